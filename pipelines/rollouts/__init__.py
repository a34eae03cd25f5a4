"""Rollouts: policies play an environment's tasks in parallel, and the episodes are stored (docs/rollouts.md).

    orders     which episodes to play, what each is called; groups, their advantages, and when a group closes
    policies   who acts: a model behind an endpoint, a script, the recorded sessions, the known solutions
    player     one episode: policy and environment, recorded and graded
    backends   where episodes are played: in threads (environments here, in processes or in containers), or on Ray
    scheduling episodes and groups as they end
    kept       the append-only files
    results    the table of results, and difficulty
    datasets   rollouts as the tables that exporters take
    past       another policy's episodes, for off-policy evaluation
"""
