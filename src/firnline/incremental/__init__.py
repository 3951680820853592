"""From the Connect plan of a stage to the plan of its change: protobuf in, protobuf out, one rule a file.

``full`` is the rule that fits every function: evaluate it on the whole state and keep the difference to what the log holds.
"""
