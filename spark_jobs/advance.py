"""What spark-submit runs for a task: advance one collection through an epoch."""

import sys

from firnline.runtime.job import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
