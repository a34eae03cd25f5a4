"""Common names of people in some forty groups, sentences that mention them, and texts of ordinary words: written by hand.

`GROUPS`: group -> (names, sentences with a place for one). `WORDS`: texts in which nothing is a name, many of whose words are
names elsewhere. `FIELDS`: fields of persons beside an address, in many languages. `FORMS`: other personal data that its form
shows.
"""

from __future__ import annotations

GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "us": ("Emily Carter, Joshua Miller, Ashley Thompson, Brandon Hughes, Megan Sullivan, Tyler Anderson, Kayla Robinson, "
           "Justin Howard, Samantha Perry, Kevin Douglas",
           ("I spoke with {} yesterday about the refund.", "Please hand the parcel to {} at the front desk.")),
    "german": ("Jürgen Schneider, Anke Vogelsang, Heiko Brandt, Ute Lindemann, Torsten Krüger, Sabine Hoffmann, Detlef "
               "Baumgartner, Silke Zimmermann, Uwe Petersen, Katrin Schulze",
               ("Ich habe gestern mit {} über die Rechnung gesprochen.", "Das Paket ist bitte an {} zu liefern.")),
    "french": ("Mathieu Lefebvre, Aurélie Girard, Thibault Moreau, Élodie Rousseau, Guillaume Bonnet, Océane Lambert, "
               "Benoît Fontaine, "
               "Maëlle Chevalier, Cédric Marchand, Sandrine Dubois",
               ("Hier j'ai parlé avec {} de la facture.", "Le colis doit être remis à {} avant vendredi.")),
    "spanish": ("Alejandro Fernández, Lucía Navarro, Íñigo Etxebarria, Beatriz Castillo, Gonzalo Herrera, Rocío Delgado, "
                "Sergio Iglesias, Nuria Cabrera, Rodrigo Fuentes, Pilar Serrano",
                ("Ayer hablé con {} sobre el pedido.", "El paquete es para {} y debe llegar el lunes.")),
    "brazilian": ("Thiago Oliveira, Juliana Nascimento, Leandro Carvalho, Camila Rodrigues, Gustavo Almeida, Fernanda Araújo, "
                  "Vinícius Teixeira, Larissa Monteiro, Rafael Cardoso, Patrícia Moura",
                  ("Ontem falei com {} sobre o pedido.", "A entrega deve ser feita para {} na portaria.")),
    "italian": ("Gianluca Esposito, Chiara Ferrari, Davide Marchetti, Elisa Colombo, Matteo Lombardi, Federica Rinaldi, "
                "Stefano Galli, Valentina Conti, Alessio Moretti, Giulia Fontana",
                ("Ieri ho parlato con {} della fattura.", "Il pacco va consegnato a {} in portineria.")),
    "dutch": ("Sjoerd van Dijk, Marloes de Vries, Joost Hendriks, Femke Visser, Bram van den Berg, Anouk Mulder, Ruben Dekker, "
              "Lotte Bakker, Thijs Smits, Sanne Kuipers",
              ("Gisteren heb ik met {} over de rekening gesproken.", "Het pakket is bestemd voor {} bij de receptie.")),
    "polish": ("Krzysztof Zieliński, Małgorzata Wiśniewska, Zbigniew Kamiński, Agnieszka Lewandowska, Wojciech Szymański, "
               "Beata Woźniak, Sławomir Dąbrowski, Grażyna Pawlak, Tomasz Jabłoński, Ewelina Krawczyk",
               ("Wczoraj rozmawiał ze mną {} w sprawie faktury.", "Paczkę odbierze jutro {} w recepcji.")),
    "czech": ("Zdeněk Procházka, Markéta Dvořáková, Lubomír Kučera, Kateřina Němcová, Vojtěch Pokorný, Šárka Benešová, "
              "Miroslav Horák, Ivana Veselá, Radek Marek, Alena Králová",
              ("Včera se mnou mluvil {} o faktuře.", "Balík zítra vyzvedne {} na recepci.")),
    "hungarian": ("Nagy Zoltán, Szabó Katalin, Tóth Gergely, Horváth Ildikó, Varga Attila, Kiss Eszter, Molnár Balázs, "
                  "Farkas Zsuzsanna, Németh Tamás, Balogh Ágnes",
                  ("Tegnap felhívott engem {} a számla miatt.", "A csomagot holnap {} veszi át a recepción.")),
    "swedish": ("Göran Lindqvist, Annika Bergström, Mats Johansson, Ulrika Nyström, Fredrik Åkesson, Malin Sjöberg, "
                "Håkan Eriksson, Kerstin Holmgren, Rasmus Lundgren, Åsa Wikström",
                ("Igår pratade jag med {} om fakturan.", "Paketet ska lämnas till {} i receptionen.")),
    "turkish": ("Mehmet Yıldırım, Ayşe Kaya, Mustafa Çelik, Zeynep Özdemir, Emre Aydın, Fatma Şahin, Hüseyin Arslan, "
                "Elif Doğan, Murat Kılıç, Gülşen Koç",
                ("Dün fatura hakkında {} ile konuştum.", "Paketi yarın {} teslim alacak.")),
    "russian": ("Дмитрий Кузнецов, Екатерина Соколова, Алексей Морозов, Наталья Волкова, Сергей Лебедев, Юлия Козлова, "
                "Павел Новиков, Светлана Орлова, Игорь Захаров, Марина Фёдорова",
                ("Вчера мне звонил {} по поводу счёта.", "Посылку завтра заберёт {} на ресепшене.")),
    "ukrainian": ("Олександр Шевченко, Тетяна Бондаренко, Андрій Ковальчук, Оксана Мельник, Богдан Поліщук, Людмила Гончар, "
                  "Тарас Кравченко, Ірина Савченко, Микола Лисенко, Галина Марченко",
                  ("Вчора мені телефонував {} щодо рахунку.", "Посилку завтра забере {} на рецепції.")),
    "greek": ("Γιώργος Παπαδόπουλος, Ελένη Νικολάου, Κώστας Αντωνίου, Μαρία Γεωργίου, Δημήτρης Οικονόμου, Σοφία Βασιλείου, "
              "Νίκος Καραγιάννης, Κατερίνα Δημητρίου, Παναγιώτης Σταθόπουλος, Αγγελική Ιωάννου",
              ("Χθες μίλησε μαζί μου ο {} για το τιμολόγιο.", "Το δέμα θα το παραλάβει αύριο {} στη ρεσεψιόν.")),
    "arabic": ("أحمد المصري, فاطمة حسين, خالد العتيبي, نورة القحطاني, يوسف إبراهيم, مريم عبدالله, عمر الشمري, ليلى منصور, "
               "حسن الخطيب, سارة محمود",
               ("تحدثت أمس مع {} بخصوص الفاتورة.", "يرجى تسليم الطرد إلى {} في الاستقبال.")),
    "hebrew": ("יוסי כהן, מיכל לוי, אבי מזרחי, רונית פרץ, משה ביטון, תמר אברהם, איתן פרידמן, שירה דהן, דוד אזולאי, נועה גבאי",
               ("אתמול דיברתי עם {} על החשבונית.", "את החבילה יש למסור אל {} בקבלה.")),
    "hindi": ("राजेश शर्मा, सुनीता वर्मा, अमित गुप्ता, पूजा सिंह, विजय मिश्रा, अनीता यादव, संजय पटेल, रेखा जोशी, मनोज तिवारी, "
              "कविता अग्रवाल",
              ("मैंने कल {} से बिल के बारे में बात की।", "पार्सल कल {} को रिसेप्शन पर दें।")),
    "indian": ("Rajesh Sharma, Priya Venkataraman, Amit Deshpande, Sunita Chatterjee, Vikram Reddy, Lakshmi Narayanan, "
               "Arjun Mukherjee, Deepika Iyer, Suresh Patil, Ananya Bhattacharya",
               ("I spoke with {} yesterday about the invoice.", "Kindly hand over the parcel to {} at reception.")),
    "vietnamese": ("Nguyễn Văn Hùng, Trần Thị Lan, Lê Minh Tuấn, Phạm Thu Hà, Hoàng Đức Anh, Vũ Ngọc Mai, Đặng Quốc Bảo, "
                   "Bùi Thanh Hương, Đỗ Hữu Nghĩa, Ngô Phương Thảo",
                   ("Hôm qua tôi đã nói chuyện với {} về hóa đơn.", "Ngày mai {} sẽ nhận bưu kiện tại quầy lễ tân.")),
    "japanese": ("佐藤健一, 鈴木美咲, 高橋翔太, 田中裕子, 渡辺大輔, 伊藤さくら, 山本拓也, 中村真由美, 小林直樹, 加藤恵子",
                 ("昨日、請求書について{}さんと話しました。", "荷物は明日{}様が受け取ります。")),
    "japanese (romanized)": ("Hiroshi Nakamura, Yuko Watanabe, Takeshi Yamamoto, Sakura Kobayashi, Kenji Matsumoto, "
                             "Aiko Hayashi, "
                             "Daisuke Shimizu, Naoko Fujimoto, Ryo Hasegawa, Emi Saito",
                             ("I spoke with {} yesterday about the invoice.", "The parcel is for {} at reception.")),
    "korean": ("김민수, 이지은, 박준영, 최서연, 정우진, 강하늘, 조현우, 윤미래, 장동건, 임수정",
               ("어제 청구서에 대해 {} 씨와 통화했습니다.", "소포는 내일 {}님이 수령합니다.")),
    "han": ("王建国, 李秀英, 张伟强, 刘晓红, 陈志明, 杨丽华, 赵海涛, 黄思远, 周雨桐, 吴佳怡",
            ("我昨天和{}谈过发票的事。", "包裹明天由{}在前台领取。")),
    "pinyin": ("Wang Jianguo, Li Xiuying, Zhang Weiqiang, Liu Xiaohong, Chen Zhiming, Yang Lihua, Zhao Haitao, Huang Siyuan, "
               "Zhou Yutong, Wu Jiayi",
               ("I spoke with {} yesterday about the invoice.", "The parcel is for {} at reception.")),
    "nigerian": ("Chinedu Okafor, Ngozi Eze, Oluwaseun Adeyemi, Folake Balogun, Emeka Nwosu, Aisha Bello, Tunde Bakare, "
                 "Yetunde Ogunleye, Ibrahim Musa, Chiamaka Obi",
                 ("I spoke with {} yesterday about the invoice.", "Please give the parcel to {} at reception.")),
    "thai": ("สมชาย ใจดี, สุดารัตน์ แก้วมณี, ประเสริฐ ศรีสุข, วิภาวดี ทองคำ, อนุชา บุญมี, กาญจนา พงษ์ไพร, ธนพล วงศ์สว่าง, นภา รุ่งเรือง, "
             "วีระ จันทร์เพ็ญ, ปิยะดา สายทอง",
             ("เมื่อวานฉันคุยกับคุณ{} เรื่องใบแจ้งหนี้", "พรุ่งนี้ฉันจะติดต่อกับ{} ที่แผนกต้อนรับ")),
    "finnish": ("Matti Virtanen, Aino Korhonen, Juhani Mäkinen, Kaisa Nieminen, Pekka Laine, Tuuli Heikkinen, Eero Koskinen, "
                "Sanna Järvinen, Ville Lehtonen, Outi Salminen",
                ("Eilen puhuin asiasta {} kanssa.", "Paketti on osoitettu nimelle {} vastaanottoon.")),
    "romanian": ("Andrei Popescu, Ioana Ionescu, Mihai Dumitru, Elena Stan, Ștefan Gheorghe, Raluca Munteanu, Florin Radu, "
                 "Cristina Matei, Bogdan Ciobanu, Anca Lazăr",
                 ("Ieri am vorbit cu {} despre factură.", "Coletul trebuie predat lui {} la recepție.")),
    "serbian": ("Милош Јовановић, Јелена Петровић, Никола Ђорђевић, Ана Николић, Марко Илић, Драгана Стојановић, Вук Павловић, "
                "Ивана Марковић, Горан Бабић, Мирјана Костић",
                ("Јуче сам разговарао са {} о рачуну.", "Пакет треба предати особи {} на рецепцији.")),
    "persian": ("علی رضایی, زهرا محمدی, حسین کریمی, مریم احمدی, رضا حسینی, نرگس موسوی, محمد جعفری, سارا صادقی, امیر رحیمی, "
                "فاطمه نوری",
                ("دیروز با {} درباره فاکتور صحبت کردم.", "لطفاً بسته را به {} تحویل دهید.")),
    "urdu": ("عمران خان, عائشہ صدیقی, بلال احمد, ثناء ملک, فیصل قریشی, نادیہ بٹ, کامران اکمل, صائمہ چوہدری, عدنان سمیع, "
             "حنا شیخ",
             ("I spoke with {} yesterday about the invoice.", "The parcel is for {} at reception.")),
    "bengali": ("রহিম উদ্দিন, সুমাইয়া আক্তার, কামাল হোসেন, নুসরাত জাহান, তানভীর আহমেদ, শারমিন সুলতানা, মোহাম্মদ আলী, ফারহানা ইসলাম, "
                "আরিফ রহমান, রুমানা খাতুন",
                ("I spoke with {} yesterday about the invoice.", "Please give the parcel to {} at reception.")),
    "tamil": ("முருகன் செல்வம், லட்சுமி நாராயணன், கார்த்திக் ராஜா, பிரியா குமார், அருண் பாண்டியன், கவிதா சுந்தரம், விஜய் ஆனந்தன், "
              "மீனா கண்ணன், சரவணன் முத்து, தேவி பிரகாஷ்",
              ("I spoke with {} yesterday about the invoice.", "Please give the parcel to {} at reception.")),
    "georgian": ("გიორგი ბერიძე, ნინო კაპანაძე, დავით მაისურაძე, მარიამ გელაშვილი, ლევან ლომიძე, თამარ კვარაცხელია, "
                 "ირაკლი ჯაფარიძე, "
                 "ანა წერეთელი, ზურაბ გიგაური, ეკა დოლიძე",
                 ("I spoke with {} yesterday about the invoice.", "Please give the parcel to {} at reception.")),
    "armenian": ("Արամ Պետրոսյան, Անահիտ Հակոբյան, Տիգրան Սարգսյան, Մարիամ Գրիգորյան, Հայկ Ավետիսյան, Լուսինե Մարտիրոսյան, "
                 "Վարդան Ղազարյան, Նարինե Մկրտչյան, Գևորգ Հարությունյան, Սոնա Կարապետյան",
                 ("Երեկ ես խոսեցի {} հետ հաշվի մասին։", "I spoke with {} yesterday about the invoice.")),
    "amharic": ("አበበ ከበደ, ሰላም ተስፋዬ, ዳዊት መኮንን, ትዕግስት አለሙ, ሙሉጌታ ታደሰ, ሄለን ገብረ, ዮሐንስ ኃይሌ, ብርቱካን ወልደ, ተክሉ አሰፋ, ፍቅርተ ደሳለኝ",
                ("I spoke with {} yesterday about the invoice.", "Please give the parcel to {} at reception.")),
    "indonesian": ("Budi Santoso, Siti Rahayu, Agus Setiawan, Dewi Lestari, Joko Widodo, Rina Wulandari, Eko Prasetyo, "
                   "Putri Handayani, Bambang Sutrisno, Ayu Permatasari",
                   ("Kemarin saya bicara dengan {} soal tagihan.", "Paket itu untuk {} di resepsionis.")),
    "filipino": ("Jose Dela Cruz, Maria Santos, Rizal Bautista, Ligaya Mendoza, Andres Villanueva, Luzviminda Ramos, "
                 "Crisanto Aquino, Marites Pascual, Emilio Salonga, Rowena Tolentino",
                 ("Kahapon nakausap ko si {} tungkol sa bill.", "Hi, this is {}, where is my parcel?")),
    "kenyan": ("Juma Mwangi, Wanjiru Kamau, Otieno Odhiambo, Achieng Onyango, Kipchoge Rotich, Njeri Kariuki, Mutua Musyoka, "
               "Amina Hassan, Baraka Mushi, Neema Shayo",
               ("Jana nilizungumza na {} kuhusu ankara.", "{} here. Where is my parcel?")),
    "ghanaian": ("Kwame Mensah, Ama Owusu, Kofi Boateng, Akosua Asante, Yaw Agyeman, Abena Osei, Kwabena Appiah, Efua Ansah, "
                 "Kojo Amoah, Adwoa Sarpong",
                 ("Please send it back.\n\nThanks,\n{}", "Hi, this is {}, where is my parcel?")),
    "irish": ("Siobhán O'Connor, Eoin Ó Briain, Niamh Gallagher, Pádraig Murphy, Aoife Byrne, Cillian Doyle, Saoirse Kavanagh, "
              "Fionn McCarthy, Gráinne Nolan, Tadhg Quinn",
              ("The parcel for {} was never delivered.", "Please send it back.\n\nBest,\n{}")),
}
WORDS: tuple[str, ...] = (
    "I will mark the rose in May; there is a chance that hope and faith help. Will you grant it? Bill me in April.",
    "The website, the TODO list, the landlord and the blog need an update. Rich text, dark blue jeans, a stone lamp.",
    "The Galaxy Buds Pro, the Mechanical Keyboard and the Water Bottle are sold out. Try the Gaming Mouse or the Desk Lamp.",
    "Fly from New York to San Francisco, then to Buenos Aires and Cape Town. The Grand Hotel at Lake Victoria is full.",
    "Our Premium Plan has Priority Support. See Terms of Service and the Privacy Policy. Open Account Settings, then Security.",
    "Microsoft Azure, Google Cloud and Amazon Web Services sent their invoices. Paid with Visa Platinum and Apple Pay.",
    "Can you cancel it on Monday? He said so to me long ago. An old man sang a song. They hung up and ran. Do it, Sir.",
    "Please note: the Summer Sale ends on Sunday. Happy New Year and Merry Christmas! Thank You For Shopping.",
    "Der Koch und der Becker arbeiten im Wald; der Müller mahlt, der Schneider näht, und der König ist klein. Der Vogel singt.",
    "Das Paket ist bei der Deutschen Post. Die Rechnung und der Versand kosten drei Euro. Guten Morgen, vielen Dank.",
    "La rose est rouge, le marchand vend un petit pain. Le boulanger ferme le dimanche. La carte bancaire a expiré.",
    "La flor del campo es blanca; la reina vive en el castillo. Mañana hay una fiesta en la plaza mayor. Tarjeta de crédito.",
    "A porta da casa está aberta; o pinheiro é alto e a pereira dá frutos. O cartão de crédito venceu na segunda.",
    "Il gallo canta, la volpe dorme, il monte è alto. La fontana della piazza è chiusa per restauro.",
    "De bakker bakt brood, de visser vist, de dijk is hoog en de berg is groen. Het pakket is onderweg.",
    "Kowal kuje żelazo, wilk biega po lesie, zima jest długa. Proszę o zwrot pieniędzy na konto bankowe.",
    "Kočka leží na stole, kos zpívá, král má veselou náladu. Prosím o vrácení peněz.",
    "A nagy ház kis udvarán egy farkas áll. A szabó varr, a molnár őröl. Kérem a pénzt vissza.",
    "Det ligger ett berg vid sjön. Lin är ett tyg. Paketet kom fram på måndag.",
    "Deniz çok güzel, kaya büyük, aslan uyuyor. Yıldız parlıyor ve gül kokuyor. Siparişim nerede, lütfen yardım edin.",
    "Вера, надежда и любовь живут вечно. Волк и козёл стоят у кузнеца. Где мой заказ номер пять?",
    "Віра і надія є в серці. Там мельник меле, коваль кує, гончар ліпить. Де моє замовлення?",
    "Η ελπίδα και η σοφία είναι αρετές. Πού είναι η παραγγελία μου; Η ειρήνη ήρθε.",
    "أين طلبي؟ الأمل كبير والنور جميل. أريد استرداد المبلغ. خدمة العملاء ممتازة.",
    "איפה ההזמנה שלי? האור יפה והשיר טוב. אני רוצה החזר כספי. תודה רבה.",
    "मेरा ऑर्डर कहाँ है? पूजा का समय है और आशा बनी है। कृपया पैसे वापस करें।",
    "Đơn hàng của tôi ở đâu? Hoa mai nở vào mùa xuân, hương thơm bay xa. Tôi muốn hoàn tiền.",
    "注文した商品はどこですか。お客様の声を聞きます。東京駅の前の山本通りで待ちます。返金してください。",
    "제 주문은 어디에 있나요? 이메일을 보내 주세요. 배송지를 바꾸고 싶습니다. 고객님 감사합니다. 오늘은 하늘이 맑습니다.",
    "我的订单在哪里？请退款。和平与发展是主题。王国的金子很高。黄色的马在江边。明天由公司处理。",
    "คำสั่งซื้อของฉันอยู่ที่ไหน ขอเงินคืนด้วย ฉันคุยกับฝ่ายบริการลูกค้า แล้ว",
    "Où est ma commande ? Wo ist meine Bestellung? Dónde está mi pedido? Dove è il mio ordine?",
    '{"product": "Blue Ridge Backpack", "color": "Rose", "city": "Florence", "status": "Pending", "category": "Home"}',
    '{"company": "Acme Logistics", "plan": "Enterprise Plus", "region": "Baden-Württemberg", "title": "Engineer"}',
    '{"item": "Martin Guitar Strings", "model": "S", "site": "Frankfurt Main", "team": "Billing"}',
    '{"from": "New York", "to": "San Jose", "owner": "Platform Team", "customer": "Acme Corp", "resource": "Meeting Room"}',
    '{"name": "Desk Lamp", "n": 2, "name_of_item": "Water Bottle", "nombre": "Zapatos", "titre": "Gants Noirs"}',
    "The baker and the butcher asked the carpenter for a favor; summer is long, autumn is short, and the bishop sang.",
    "Our return policy: items may be sent back within thirty days, unused and in the original box, with the receipt.",
    "Your order has been shipped and will arrive between Tuesday and Thursday. Track it in your account at any time.",
    "Bitte geben Sie Ihre Bestellnummer ein. Wir prüfen den Vorgang und melden uns innerhalb von zwei Werktagen bei Ihnen.",
    "Le remboursement sera effectué sous dix jours ouvrés. Vous recevrez une confirmation par courrier électronique.",
    "El reembolso se realizará en diez días hábiles. Recibirá una confirmación por correo electrónico.",
    "O reembolso será feito em dez dias úteis. Você receberá uma confirmação por e-mail em breve.",
    "Il rimborso avverrà entro dieci giorni lavorativi. Riceverai una conferma via e-mail.",
    "Zwrot pieniędzy nastąpi w ciągu dziesięciu dni roboczych. Otrzymasz potwierdzenie pocztą elektroniczną.",
    "Para iadesi on iş günü içinde yapılacaktır. Onay e-posta ile gönderilecektir.",
    "Возврат денег будет произведён в течение десяти рабочих дней. Вы получите подтверждение по почте.",
    "Tiền sẽ được hoàn lại trong mười ngày làm việc. Bạn sẽ nhận được xác nhận qua thư điện tử.",
    "Dana akan dikembalikan dalam sepuluh hari kerja. Anda akan menerima konfirmasi melalui surel.",
    "Återbetalningen sker inom tio arbetsdagar. Du får en bekräftelse via e-post.",
    "A visszatérítés tíz munkanapon belül megtörténik. Visszaigazolást kap e-mailben.",
    "Peníze budou vráceny do deseti pracovních dnů. Potvrzení obdržíte elektronickou poštou.",
    "De terugbetaling gebeurt binnen tien werkdagen. U ontvangt een bevestiging per e-mail.",
    "Η επιστροφή χρημάτων θα γίνει εντός δέκα εργάσιμων ημερών. Θα λάβετε επιβεβαίωση με ηλεκτρονικό ταχυδρομείο.",
    "سيتم رد المبلغ خلال عشرة أيام عمل. ستصلك رسالة تأكيد عبر البريد الإلكتروني.",
    "ההחזר יבוצע בתוך עשרה ימי עסקים. אישור יישלח בדואר אלקטרוני.",
    "पैसे दस कार्य दिवसों में वापस किए जाएंगे। पुष्टि ईमेल से मिलेगी।",
    "払い戻しは十営業日以内に行われます。確認のメールが届きます。",
    "환불은 영업일 기준 열흘 이내에 처리됩니다. 확인 메일을 보내 드립니다.",
    "退款将在十个工作日内处理。您会收到确认邮件。",
    "เงินจะคืนภายในสิบวันทำการ คุณจะได้รับอีเมลยืนยัน",
    '{"order_id": "A-1001", "items": [{"title": "Leather Wallet", "qty": 2}], "carrier": "Swift Post"}',
    '{"error": "Payment Declined", "hint": "Try Another Card", "owner": "Billing Service", "by": "Night Job"}',
    "def main(): Path and Dict are classes; Thread Pool Executor raises Value Error; see Stack Overflow and Pull Request.",
    "Error: Connection Refused by Load Balancer. Internal Server Error at Data Center East. Job Queue is Full.",
)
FIELDS: tuple[str, ...] = (
    "name", "customer", "client", "patient", "recipient", "owner", "passenger", "contact", "guest", "tenant", "claimant",
    "insured", "borrower", "applicant", "candidate", "employee", "assignee", "requester", "subscriber", "cardholder",
    "beneficiary", "account_holder", "primary_contact", "emergencyContact", "ship_to", "attn", "full_name", "display_name",
    "kunde", "empfänger", "ansprechpartner", "nom", "destinataire", "titulaire", "nombre", "cliente", "paciente", "nome",
    "intestatario", "klient",
    "odbiorca", "zákazník", "müşteri", "клиент", "客户", "顧客", "고객", "العميل", "who_called", "person", "details")
RARE = ("Xanthippe Quillfeather", "Zvonimir Grubešić", "Thandolwethu Mkhwebane", "Ysolde Vantongeren", "Bjarnhéðinn Þrastarson")
FORMS: tuple[tuple[str, str], ...] = (
    ("2001:db8:85a3::8a2e:370:7334", "login from 2001:db8:85a3::8a2e:370:7334 failed"),
    ("fe80::1ff:fe23:4567:890a", "peer fe80::1ff:fe23:4567:890a%eth0 is up"),
    ("2a02:8109:9a3f:1c00:5d2:77ff:fe1b:9c4e", '{"note": "from [2a02:8109:9a3f:1c00:5d2:77ff:fe1b:9c4e]:443"}'),
    ("Lindenstraße 27", "Ich wohne in der Lindenstraße 27, 10969 Berlin."),
    ("Hauptstr. 5a", "Bitte an Hauptstr. 5a, 80331 München senden."),
    ("14 rue des Martyrs", "J'habite au 14 rue des Martyrs, 75009 Paris."),
    ("Calle de Alcalá 45", "Vivo en la Calle de Alcalá 45, 28014 Madrid."),
    ("Via Garibaldi 12", "Abito in Via Garibaldi 12, 16124 Genova."),
    ("Rua Augusta, 1508", "Moro na Rua Augusta, 1508, São Paulo."),
    ("ul. Marszałkowska 84", "Mieszkam na ul. Marszałkowska 84, 00-514 Warszawa."),
    ("Keizersgracht 126", "Ik woon aan de Keizersgracht 126, 1015 CW Amsterdam."),
    ("Storgatan 11", "Jag bor på Storgatan 11, 411 24 Göteborg."),
    ("ул. Ленина, д. 15", "Я живу: ул. Ленина, д. 15, кв. 3."),
    ("Atatürk Caddesi No: 42", "Adresim Atatürk Caddesi No: 42, İzmir."),
    ("10 Downing Street", "Deliver to 10 Downing Street, London SW1A 2AA."),
    ("SW1A 2AA", "Deliver to 10 Downing Street, London SW1A 2AA."),
    ("朝阳区建国路88号", "地址：朝阳区建国路88号。"),
    ("C01X00T47", "My passport number is C01X00T47, valid until May."),
    ("X4RTBPFW4", "Reisepass Nr. X4RTBPFW4 liegt bei."),
    ("B-MW 3427", "My licence plate is B-MW 3427."),
    ("AB12 CDE", "The car with number plate AB12 CDE is parked."),
    ("M-XY 912", "Kennzeichen: M-XY 912"),
    ("wrenhollow", "File /home/wrenhollow/projects/app/main.py not readable"),
    ("tmarchbanks", "C:\\\\Users\\\\tmarchbanks\\\\Desktop\\\\x.txt is missing"),
    ("quenbyfarr", "cd /Users/quenbyfarr/Documents failed"),
)
