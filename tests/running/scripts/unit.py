"""Python's own tests of some of its modules, by name: what each test said, without times."""

import io
import sys
import unittest
import warnings

warnings.simplefilter("ignore")
for name in sys.argv[1:]:
    suite = unittest.defaultTestLoader.loadTestsFromName(f"test.{name}")
    result = unittest.TextTestRunner(io.StringIO(), verbosity=0).run(suite)
    print(name, result.testsRun, len(result.skipped), [str(test) for test, _ in result.failures + result.errors])
