"""What leaves the house: modules that are copied verbatim into what is exported, `play.py` and one or more a consumer.

Each imports the standard library, its consumer's package and its neighbours here (`from . import play`): in an exported
package they stand beside each other too.
"""
