"""Rollouts: policies play an environment's tasks side by side, and what came of it is kept (docs/rollouts.md).

    orders     which episodes there are to play, and what each is called
    policies   who acts: a model behind an endpoint, a script, the recorded sessions, the known solutions
    player     one episode: policy and room, recorded and graded
    backends   where episodes are played: this process's threads with rooms here, in processes or in containers
    cluster    the same on Ray (the one door to it)
    groups     episodes from one beginning, their advantages, and when a group closes
    scheduling episodes and groups as they end
    kept       the append-only files
    results    what is read from them: the table of results, difficulty, datasets
"""
