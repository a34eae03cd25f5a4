"""Build environments from what logs taught, and play them.

    from env_builder import Environment

    environment = Environment.load("OUT/environments/main")
    observation = environment.reset(environment.tasks[0].task_id)
    result = environment.call("a_tool", {"argument": "value"})
    environment.finish()
    print(environment.grade().reward)

Everything else in this package is private: it may change without notice.
"""

from env_builder.runtime.apps import App, AppState, Start
from env_builder.runtime.bindings import Ask, Reply
from env_builder.runtime.environment import Environment
from env_builder.runtime.records import Episode, Grade, Observation, Result, Task

__all__ = ["App", "AppState", "Ask", "Environment", "Episode", "Grade", "Observation", "Reply", "Result", "Start", "Task"]
