"""Copy a file: ``copy_file.py SOURCE TARGET``. Run in a process of its own, see ``snapshots.py``."""

import shutil
import sys

if __name__ == "__main__":
    shutil.copyfile(sys.argv[1], sys.argv[2])
