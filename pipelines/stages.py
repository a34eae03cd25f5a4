"""The stages in order: the one place where a stage is declared.

Assets, plans, asset checks, erasure and the table in docs/reference/stages.md are derived from `STAGES`. What a stage does is
named by module and function, and loaded when it runs; when it is skipped is in pipelines/running/stage.py.
"""

from __future__ import annotations

from pipelines.running.stage import Stage, StageTable

_SESSION, _TASK = ("sessions", "session_id"), ("tasks", "task_id")

STAGES: tuple[Stage, ...] = (
    Stage(
        "extract", "Read new log files into records and typed events.",
        (StageTable("raw.files"), StageTable("raw.locations"), StageTable("raw.records"), StageTable("raw.quarantine"),
         StageTable("raw.declarations"), StageTable("raw.forgotten"), StageTable("raw.privacy"), StageTable("raw.people"),
         StageTable("raw.new_people"), StageTable("core.events", (("events", "event_id"),))),
        (), "pipelines.ingestion.ingest:ingest", always=True),
    Stage(
        "sessions", "Assemble events into sessions, turns, feedback, reviews and tools; report what changed in the logs.",
        (StageTable("core.sessions", (_SESSION,)),
         StageTable("core.turns", (_SESSION, ("events", "turn_id"), ("events", "result_id"))),
         StageTable("core.feedback", (_SESSION, ("events", "feedback_id"))),
         StageTable("core.row_changes", (("events", "change_id"),)),
         StageTable("core.corrections", (("sessions", "subject"), ("events", "correction_id"))),
         StageTable("core.reviews", (_SESSION, ("events", "review_id"))), StageTable("core.tools"),
         StageTable("raw.epochs", (_SESSION,))),
        ("extract",), "pipelines.building.sessions:sessions", ("[sources]", "[sessions]", "since", "services", "limit")),
    Stage(
        "apps", "Read the exports of a company's apps into what every field of their records was over time.",
        (StageTable("core.versions"), StageTable("core.accounts")), ("extract",),
        "pipelines.building.companies:apps", ("[company]", "[privacy]")),
    Stage(
        "work", "Find the pieces of work that people did in a company's apps: their kinds, and how well each ended.",
        (StageTable("core.work_events"), StageTable("mart.work_items"), StageTable("raw.work_sides")), ("apps",),
        "pipelines.building.work:work"),
    Stage(
        "company_rooms", "Write one environment of the company with the tools of all its apps, and verify its tasks.",
        (StageTable("mart.company_rooms"),), ("apps", "work", "sessions"),
        "pipelines.building.company_rooms:company_rooms", ("[privacy]", "[company]", "image", "base_image", "[audit]"),
        intact="pipelines.building.company_rooms:hold"),
    Stage(
        "demonstrations", "Say in tool calls what people did in a company's apps, and play it again.",
        (StageTable("mart.work_steps"),), ("apps", "work", "company_rooms", "sessions"),
        "pipelines.building.work_datasets:demonstrations"),
    Stage(
        "starts", "Find where in its repository each session of coding began, and what became of its change.",
        (StageTable("mart.starts", (_SESSION,)), StageTable("mart.code_changes", (_SESSION,)),
         StageTable("mart.workspace_steps", (_SESSION, ("events", "turn_id"))), StageTable("mart.host_records")),
        ("extract", "sessions"), "pipelines.building.starts:starts", ("repositories_text",)),
    Stage(
        "code_tasks", "Find how each repository's tests are run; make tasks of sessions, other commits, and bugs put back.",
        (StageTable("mart.recipes"), StageTable("mart.code_tasks", (_SESSION,))),
        ("extract", "sessions", "starts"), "pipelines.building.code_tasks:code_tasks", ("repositories_text", "[repositories]")),
    Stage(
        "code_rooms", "Write an environment of each repository with tasks that hold; verify what sessions had left.",
        (StageTable("mart.code_rooms"), StageTable("mart.code_verdicts", (_SESSION,))),
        ("sessions", "starts", "code_tasks"), "pipelines.building.code_rooms:code_rooms", ("repositories_text",),
        intact="pipelines.building.code_rooms:hold"),
    Stage(
        "site_rooms", "Learn each web site from its pages, judge the work done on it, and write an environment of it.",
        (StageTable("mart.site_rooms"), StageTable("mart.site_work", (_SESSION,)), StageTable("mart.site_steps", (_SESSION,))),
        ("extract", "sessions"), "pipelines.building.site_rooms:site_rooms", ("[sources]", "[sessions]"),
        intact="pipelines.building.site_rooms:hold"),
    Stage(
        "world", "Rebuild the world over time, the answers that tools gave, and the program of each tool.",
        (StageTable("mart.services"), StageTable("mart.worlds", (_SESSION,)),
         StageTable("mart.facts", (("events", "event_id"), _SESSION)),
         StageTable("mart.recorded", (("events", "event_id"), _SESSION)), StageTable("mart.behaviours"),
         StageTable("raw.programs")),
        ("sessions",), "pipelines.building.worlds:worlds", ("[sources]", "behaviour_text")),
    Stage(
        "goals", "Find what each session was for, with the arguments that its words ask for.",
        (StageTable("mart.goals", (("goals", "goal_id"),)), StageTable("raw.word_groups", (_SESSION,))),
        ("sessions", "world"), "pipelines.building.tasks:goals"),
    Stage(
        "names", "Name families of goals, and write each goal as a sentence.",
        (StageTable("mart.names"), StageTable("mart.sentences", (("goals", "goal_id"),))),
        ("sessions", "world", "goals"), "pipelines.building.tasks:names", ("names_text",)),
    Stage(
        "outcomes", "Estimate how well each session went.",
        (StageTable("mart.outcomes", (_SESSION,)), StageTable("mart.signals"), StageTable("mart.conditions")),
        ("sessions", "starts", "code_rooms", "world", "goals"), "pipelines.building.tasks:outcomes", ("[outcomes]",)),
    Stage(
        "tasks", "Group sessions into tasks with goal, start and split; report what the splits share.",
        (StageTable("mart.tasks", (_TASK,)), StageTable("mart.families"), StageTable("mart.leakage"),
         StageTable("raw.sides", (_SESSION,))),
        ("sessions", "starts", "world", "goals", "outcomes"), "pipelines.building.tasks:tasks", ("[gates]",)),
    Stage(
        "rewards", "Mine a rubric for each task from what successful and failed sessions changed.",
        (StageTable("mart.rubrics", (_TASK,)),),
        ("sessions", "world", "goals", "names", "outcomes", "tasks"),
        "pipelines.building.rewards:rewards", ("[gates]", "[outcomes]", "rewards_text")),
    Stage(
        "variants", "Make new tasks from failures and from known solutions bound to other records.",
        (StageTable("mart.variants", (_TASK,)),),
        ("sessions", "site_rooms", "world", "goals", "names", "outcomes", "tasks", "rewards"),
        "pipelines.building.rewards:variants", ("[gates]", "[outcomes]", "[variants]", "rewards_text")),
    Stage(
        "environments", "Write, verify and publish an environment for each service, and its image where an engine answers.",
        (StageTable("mart.environments", (("services", "service"),)),),
        ("extract", "sessions", "company_rooms", "code_rooms", "site_rooms", "world", "outcomes", "tasks", "rewards",
         "variants"),
        "pipelines.building.environments:environments", ("image", "base_image", "[audit]", "[gates]", "[environments]"),
        outputs=("environments", "rewards", "unverified"), intact="pipelines.building.environments:hold"),
    Stage(
        "datasets", "Write the files of every exporter that runs by default, one per split.",
        (StageTable("mart.datasets", (("folders", "split_part(path, '/', 2)"),)),),
        ("extract", "sessions", "company_rooms", "demonstrations", "site_rooms", "outcomes", "tasks", "environments"),
        "pipelines.building.datasets:datasets", ("[audit]",),
        outputs=("datasets",), intact="pipelines.building.datasets:hold"),
    Stage(
        "funnel", "Count all decisions, then publish the copy of the warehouse that readers open.",
        (StageTable("mart.decisions"),),
        ("extract", "apps", "work", "company_rooms", "demonstrations", "sessions", "code_tasks", "code_rooms", "site_rooms",
         "world", "goals", "names", "outcomes", "tasks", "rewards", "variants", "environments", "datasets"),
        "pipelines.building.decisions:funnel", always=True, last=True),
)
