"""python -m prong script.py [args]: runs a program that imports torch on Prong instead."""

import sys

from prong._runner import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
