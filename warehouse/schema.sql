-- Tables of the warehouse. `raw`: what was read; `core`: what happened, typed, nothing inferred; `mart`: what we make of it.
-- Columns stand in the order of the records' fields (warehouse/records.py); a test holds the two equal.
create schema if not exists raw;
create schema if not exists core;
create schema if not exists mart;

create table if not exists raw.schema_version (version integer primary key, fingerprint varchar not null);
-- What each stage was last computed from (a stage whose digest stands here is up to date), and the version of what it gave: the
-- content of each of its tables, digested (JSON).
create table if not exists raw.stages (
    stage varchar primary key, digest varchar not null, versions varchar not null, seconds double not null,
    counts varchar not null, done_at timestamptz not null);
-- The same of a service's share of a stage that is made service by service, and the decisions (JSON) that came with it.
create table if not exists raw.partitions (
    stage varchar not null, service varchar not null, digest varchar not null, decisions varchar not null,
    primary key (stage, service));
-- What was played against each task, so that it need not be played again while nothing that it depends on changed.
create table if not exists raw.audits (
    service varchar not null, audit_id varchar not null, code varchar not null, audited varchar not null,
    primary key (service, audit_id));
-- What functions gave of their arguments alone (`cache_id`: digest of these; `value`: JSON, deflated), so that a night computes
-- what is new.
create table if not exists raw.cache (
    stage varchar not null, cache_id varchar not null, code varchar not null, value blob not null,
    primary key (stage, cache_id));

create table if not exists raw.files (
    file_id varchar primary key, previous varchar, source varchar not null, path varchar not null, chunk bigint not null,
    byte_offset bigint not null, format varchar not null, n_bytes bigint not null, n_records bigint not null, day varchar,
    read_at timestamptz not null, settled boolean not null);
create table if not exists raw.locations (
    path varchar primary key, file_id varchar not null, n_bytes bigint not null, modified_ns bigint not null);
-- Of records and events there are too many for an index: their ids are made unique when all chunks of a run are in
-- (pipelines/ingestion/settle.py), and rules hold them so. Trying every way to compress a column costs more than writing it, so each is
-- named: none for ids, which are hashes, a dictionary for what takes few values, FSST for text.
create table if not exists raw.records (
    record_id varchar not null using compression uncompressed, file_id varchar not null using compression dictionary,
    line bigint not null, byte_offset bigint not null, n_bytes bigint not null, first_id varchar using compression uncompressed,
    reject_reason varchar using compression dictionary);
create table if not exists raw.quarantine (
    record_id varchar not null, file_id varchar not null, line bigint not null, byte_offset bigint not null,
    content blob not null);
create table if not exists raw.declarations (
    declaration_id varchar primary key, file_id varchar not null, source varchar not null, service varchar,
    tool varchar not null, description varchar, input_schema varchar, annotations varchar);

-- Who was forgotten, as hashes with the owner's key: what is read of them again is left out (pipelines/erasing).
create table if not exists raw.forgotten (
    kind varchar not null, hash varchar not null, form varchar not null, primary key (kind, hash));
-- Whether personal data was taken out of what is here: by which rules, with which key; no row: it was not, or nothing is here.
create table if not exists raw.privacy (policy varchar primary key, key_check varchar not null);
-- Who was seen, sealed with the owner's key: what is read later is cleaned of them too.
create table if not exists raw.people (person_id varchar primary key, kind varchar not null, sealed blob not null);
create table if not exists raw.new_people (person_id varchar primary key);
-- The ledger of epochs: with which arrival of logs a session was first seen, and what was decided of it then, for good.
create table if not exists raw.epochs (session_id varchar primary key, epoch bigint not null);
create table if not exists raw.sides (
    session_id varchar primary key, service varchar not null, first_session_id varchar not null, component varchar not null,
    split varchar not null, method varchar not null);
create table if not exists raw.word_groups (session_id varchar primary key, word_group varchar not null);
create table if not exists raw.work_sides (ref varchar primary key, split varchar not null);
create table if not exists raw.programs (
    service varchar not null, tool varchar not null, epoch bigint not null, n_examples bigint not null, grounds varchar not null,
    learnt varchar not null, n_against bigint not null, fidelity double, abstains double, cassette_fidelity double,
    cassette_abstains double, primary key (service, tool));

create table if not exists core.events (
    event_id varchar not null using compression uncompressed, record_id varchar not null using compression uncompressed,
    file_id varchar not null using compression dictionary, source varchar not null using compression dictionary,
    format varchar not null using compression dictionary, service varchar using compression dictionary,
    session_id varchar using compression fsst, position bigint, happened_at timestamptz,
    kind varchar not null using compression dictionary, role varchar using compression dictionary,
    content varchar using compression fsst, call_id varchar using compression uncompressed, tool varchar using compression fsst,
    arguments varchar using compression fsst, is_error boolean, requestor varchar using compression dictionary,
    name varchar using compression fsst, value varchar using compression fsst, latency_ms double,
    model varchar using compression dictionary, usage varchar using compression fsst,
    lossy varchar using compression dictionary);
create table if not exists core.sessions (
    session_id varchar primary key, source varchar not null, service varchar not null, started_at timestamptz,
    ended_at timestamptz, day varchar, n_messages bigint not null, n_calls bigint not null, identity varchar,
    format varchar not null, alike varchar, other_session_ids varchar[] not null);
create table if not exists core.turns (
    turn_id varchar primary key, session_id varchar not null, service varchar not null, position bigint not null,
    happened_at timestamptz, kind varchar not null, role varchar, content varchar, call_id varchar, tool varchar,
    arguments varchar, arguments_raw varchar, is_error boolean, requestor varchar, answered_at timestamptz,
    result_id varchar, latency_ms double, model varchar);
create table if not exists core.feedback (
    feedback_id varchar primary key, session_id varchar not null, happened_at timestamptz, name varchar not null,
    value varchar not null, source varchar not null);
create table if not exists core.corrections (
    correction_id varchar primary key, happened_at timestamptz not null, author varchar not null, why varchar not null,
    kind varchar not null, subject varchar not null, value varchar not null, stands boolean not null);
create table if not exists core.reviews (
    review_id varchar primary key, session_id varchar not null, happened_at timestamptz, reviewer varchar not null,
    is_right boolean not null, reason varchar not null, task_id varchar, is_sampled boolean not null,
    stands boolean not null);
create table if not exists core.row_changes (
    change_id varchar primary key, source varchar not null, happened_at timestamptz, table_name varchar not null,
    operation varchar not null, key varchar, before varchar, after varchar);
create table if not exists core.versions (
    position bigint primary key, entity_class varchar not null, entity_id varchar not null, field varchar not null,
    value varchar not null, changed_at bigint not null, actor varchar, guessed_until bigint not null, record varchar not null,
    sequence bigint not null);
create table if not exists core.accounts (
    address varchar not null, entity_class varchar not null, account varchar not null, primary key (address, entity_class));
create table if not exists core.work_events (
    position bigint primary key, ref varchar not null, happened_at timestamptz not null, entity_class varchar not null,
    entity_id varchar not null, verb varchar not null, container varchar not null, actor varchar not null, place varchar not null,
    thread varchar not null, addressees varchar[] not null, texts varchar[] not null, changes varchar not null,
    record varchar not null);
create table if not exists core.tools (
    service varchar not null, tool varchar not null, description varchar, input_schema varchar not null,
    declared boolean not null, annotations varchar, n_calls bigint not null, primary key (service, tool));

create table if not exists mart.work_items (
    work_item_id varchar primary key, refs varchar[] not null, kind varchar not null, probability double not null,
    success double, opened_at timestamptz not null, closed_at timestamptz not null, reason varchar not null,
    slots varchar not null, votes varchar not null, corrections varchar not null);
create table if not exists mart.starts (
    session_id varchar primary key, repository varchar not null, commit_id varchar not null, how varchar not null,
    rivals varchar[] not null, dirty varchar not null);
create table if not exists mart.code_changes (
    session_id varchar primary key, repository varchar not null, pull_request bigint, state varchar not null,
    merge_commit varchar, reverted_by varchar, ci varchar, winner varchar, won_by varchar not null,
    source_files varchar[] not null, test_files varchar[] not null, success double, evidence varchar[] not null);
create table if not exists mart.host_records (
    repository varchar not null, kind varchar not null, number bigint not null, valid_from timestamptz not null,
    valid_to timestamptz, value varchar not null, primary key (repository, kind, number, valid_from));
create table if not exists mart.recipes (
    repository varchar primary key, recipe_id varchar not null, recipe varchar not null, share double, n_runs bigint not null);
create table if not exists mart.code_tasks (
    task_id varchar primary key, session_id varchar, repository varchar not null, recipe_id varchar not null,
    start_commit varchar not null, base_commit varchar not null, base varchar not null, dirty varchar not null,
    winner varchar not null, goal varchar not null, script varchar[] not null, fail_to_pass varchar[] not null,
    pass_to_pass varchar[] not null, flaky varchar[] not null, test_files varchar[] not null, fix_files varchar[] not null,
    derived_from varchar not null);
create table if not exists mart.code_rooms (
    environment varchar primary key, repository varchar not null, content_digest varchar not null,
    rewards_digest varchar not null, n_tasks bigint not null);
create table if not exists mart.code_verdicts (
    task_id varchar not null, session_id varchar not null, resolved boolean, forgeable boolean not null,
    detail varchar not null, primary key (task_id, session_id));
create table if not exists mart.site_rooms (
    environment varchar primary key, host varchar not null, content_digest varchar not null,
    rewards_digest varchar not null, n_tasks bigint not null);
create table if not exists mart.company_rooms (
    environment varchar not null, folder varchar not null, content_digest varchar not null, rewards_digest varchar,
    image_id varchar, image_skip_reason varchar, n_tasks bigint not null, n_tools bigint not null,
    primary key (environment, folder));
create table if not exists mart.site_work (
    session_id varchar not null, host varchar not null, person varchar, ask varchar, asked_by varchar, kind bigint,
    is_right boolean, broken varchar[] not null, complaint boolean not null, task_id varchar, primary key (session_id, host));
create table if not exists mart.site_steps (
    session_id varchar not null, host varchar not null, position bigint not null, task_id varchar not null,
    split varchar not null, goal varchar not null, happened_at timestamptz not null, tool varchar not null,
    arguments varchar not null, content varchar not null, is_error boolean not null, tier varchar not null,
    observation varchar not null, candidates varchar not null, element varchar,
    primary key (session_id, host, position));
create table if not exists mart.work_steps (
    episode_id varchar not null, work_item_id varchar not null, person varchar not null, part bigint not null,
    kind varchar not null, success double, task_id varchar, split varchar not null, goal varchar not null,
    reaches boolean not null, gap varchar, position bigint not null, happened_at timestamptz not null, tool varchar not null,
    arguments varchar not null, content varchar not null, is_error boolean not null, tier varchar not null,
    refs varchar[] not null, lossy varchar[] not null, primary key (episode_id, position));
create table if not exists mart.workspace_steps (
    turn_id varchar not null, place bigint not null, session_id varchar not null, position bigint not null,
    kind varchar not null, path varchar, first_line bigint, before varchar, text varchar, exit_code bigint,
    primary key (turn_id, place));
create table if not exists mart.services (
    service varchar primary key, starts_from varchar not null, decided_by varchar, votes varchar not null,
    worlds varchar not null);
create table if not exists mart.worlds (
    session_id varchar primary key, service varchar not null, world varchar not null);
create table if not exists mart.leakage (service varchar primary key, report varchar not null);
create table if not exists mart.outcomes (
    session_id varchar primary key, probability double, low double, high double, blind double,
    is_contested boolean not null, model varchar not null, signals varchar not null);
create table if not exists mart.signals (
    service varchar not null, signal varchar not null, side varchar not null, n_votes bigint not null,
    coverage double not null, agreement double not null, log_odds double not null, primary key (service, signal, side));
create table if not exists mart.conditions (
    condition_id varchar primary key, service varchar not null, tool varchar not null, status varchar not null,
    condition varchar not null, field varchar not null, sentence varchar not null, declined_session_ids varchar[] not null,
    acted_session_ids varchar[] not null);
create table if not exists mart.tasks (
    task_id varchar primary key, service varchar not null, family varchar not null, slots varchar not null,
    goal varchar not null, session_ids varchar[] not null, segment_of varchar, derived_from varchar,
    starts_at timestamptz, succeeded_session_ids varchar[] not null, split varchar not null, difficulty double,
    rate double, rate_low double, rate_high double, difficulty_band varchar, call_sequences varchar not null,
    late_arguments varchar not null, reported_facts varchar not null, signature varchar not null);
create table if not exists mart.families (
    family varchar primary key, service varchar not null, asks varchar not null, goal varchar not null,
    n_sessions bigint not null, n_tasks bigint not null, n_succeeded bigint not null, rate double, rate_low double,
    rate_high double, difficulty_band varchar, first_at timestamptz, last_at timestamptz, signature varchar not null);
create table if not exists mart.goals (
    goal_id varchar primary key, session_id varchar not null, service varchar not null, place bigint not null,
    begins bigint not null, ends bigint not null, kind varchar not null, asks varchar not null, family varchar not null,
    goal varchar not null, slots varchar not null, continues varchar);
create table if not exists mart.names (
    service varchar not null, family varchar primary key, kinds varchar[] not null, name varchar not null,
    sentence varchar not null, written_by varchar);
create table if not exists mart.sentences (
    goal_id varchar primary key, sentence varchar not null, written_by varchar);
create table if not exists mart.facts (
    fact_id varchar primary key, service varchar not null, entity_class varchar not null, key varchar not null,
    value varchar not null, valid_from timestamptz, valid_to timestamptz, session_id varchar,
    derivation varchar not null, observed_at timestamptz, event_id varchar not null);
create table if not exists mart.recorded (
    recorded_id varchar primary key, service varchar not null, tool varchar not null, arguments varchar not null,
    content varchar not null, is_error boolean not null, valid_from timestamptz, valid_to timestamptz,
    session_id varchar, after varchar not null, effects varchar not null, event_id varchar not null);
create table if not exists mart.behaviours (
    service varchar not null, tool varchar not null, effect varchar not null, program varchar not null,
    n_support bigint not null, n_against bigint not null, fidelity double, abstains double,
    cassette_fidelity double, cassette_abstains double,
    primary key (service, tool));
create table if not exists mart.rubrics (
    rubric_id varchar primary key, task_id varchar not null, service varchar not null, checks varchar not null,
    solution varchar not null);
create table if not exists mart.variants (
    task_id varchar primary key, service varchar not null, family varchar not null, slots varchar not null,
    goal varchar not null, session_ids varchar[] not null, starts_at timestamptz, split varchar not null,
    derived_from varchar not null, made_from varchar not null, opening varchar not null, script varchar not null,
    rubric_id varchar not null, checks varchar not null, solution varchar not null);
create table if not exists mart.environments (
    environment varchar primary key, service varchar not null, content_digest varchar not null,
    rewards_digest varchar not null, image_id varchar, image_skip_reason varchar, n_tasks bigint not null,
    n_tools bigint not null);
create table if not exists mart.datasets (
    path varchar primary key, kind varchar not null, split varchar, n_rows bigint not null, n_bytes bigint not null,
    sha256 varchar not null);
create table if not exists mart.decisions (
    stage varchar not null, subject varchar not null, kept boolean not null, reason varchar not null,
    detail varchar not null, file_id varchar, line bigint, primary key (stage, subject, reason));

create or replace view mart.funnel as
    select stage, kept, reason, count(*) as n
    from mart.decisions
    group by stage, kept, reason
    order by stage, kept desc, n desc, reason;

-- Ready views, for people who ask in SQL: one line a session, a call, a task, … (`outcome`: as in warehouse/vocabulary.py).
create or replace view sessions as
    select session_id, service, source, format, started_at, ended_at, identity, n_messages, n_calls,
        case when probability >= 0.5 then 'succeeded' when probability < 0.5 then 'failed' else 'undecided' end as outcome,
        probability as success_probability, low as success_low, high as success_high
    from core.sessions left join mart.outcomes using (session_id)
    order by started_at, session_id;
create or replace view messages as
    select session_id, service, position, happened_at, role, content, model
    from core.turns where kind = 'message'
    order by session_id, position;
create or replace view calls as
    select session_id, service, position, happened_at, tool, arguments, content as answer, is_error, latency_ms, requestor
    from core.turns where kind = 'call'
    order by session_id, position;
create or replace view tool_errors as
    select service, tool, content as answer, count(*) as n, count(distinct session_id) as n_sessions,
        min(happened_at) as first_at, max(happened_at) as last_at
    from core.turns where kind = 'call' and is_error
    group by service, tool, content
    order by n desc, service, tool, answer;
create or replace view tools as
    select service, tool, description, declared, n_calls, effect, n_support, n_against,
        fidelity, abstains, cassette_fidelity, cassette_abstains
    from core.tools left join mart.behaviours using (service, tool)
    order by service, tool;
create or replace view feedback as
    select session_id, service, f.happened_at, f.name, f.value, f.source, probability as success_probability
    from core.feedback as f join core.sessions using (session_id) left join mart.outcomes using (session_id)
    order by f.happened_at, f.feedback_id;
create or replace view families as
    select family, f.service, coalesce(n.name, f.goal) as name, n.sentence, f.n_sessions, f.n_tasks, f.n_succeeded, f.rate,
        f.rate_low, f.rate_high, f.difficulty_band, f.first_at, f.last_at
    from mart.families as f left join mart.names as n using (family)
    order by f.service, name, family;
create or replace view tasks as
    select task_id, t.service, t.family, t.goal, t.split, len(t.session_ids) as n_sessions, t.rate, t.difficulty_band,
        bool_or(d.stage = 'verify' and d.kept) as is_published, min(d.stage) filter (not d.kept) as reject_stage,
        min(d.reason) filter (not d.kept) as reject_reason
    from mart.tasks as t left join mart.decisions as d on d.subject = t.task_id
    group by all
    order by t.service, t.family, task_id;
create or replace view rejected as
    select stage, reason, count(*) as n, min(subject) as example, arg_min(detail, subject) as detail
    from mart.decisions where not kept
    group by stage, reason
    order by stage, n desc, reason;
create or replace view lineage as
    select distinct task_id, session_id, record_id, path, line, r.byte_offset, r.n_bytes
    from (select task_id, unnest(session_ids) as session_id from mart.tasks)
    join core.events using (session_id) join raw.records as r using (record_id) join raw.files as f on f.file_id = r.file_id
    order by task_id, session_id, path, line, record_id;
create or replace view sources as
    select source, format, count(distinct path) as n_files, sum(n_records)::bigint as n_records, sum(n_bytes)::bigint as n_bytes,
        min(day) as first_day, max(day) as last_day
    from raw.files
    group by source, format
    order by source, format;
