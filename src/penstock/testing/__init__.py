"""The test kit: the engine core on virtual time, with scripted arrivals and costs of your choice.

It ships with the product so that a policy or an application can be tested as the engine itself is.

>>> host = FakeHost.of('''
...     CREATE STREAM s (a INT) FROM rate;
...     CREATE QUERY small AS SELECT a FROM s WHERE a < 5;
... ''')
>>> host.arrive("s", at=1.0, rows=100)
>>> host.arrive("s", at=1.5, rows=100)
>>> host.run()
>>> host.decisions
[(1.0, 's/fanout', (0,)), (2.0, 's/fanout', (1,))]
"""

from __future__ import annotations

from penstock.testing.assertions import assert_decisions
from penstock.testing.fake_host import FakeHost
from penstock.testing.scripted_costs import Figures, a_tenth, never, one_second
from penstock.testing.virtual_panes import Answer

__all__ = ["Answer", "FakeHost", "Figures", "a_tenth", "assert_decisions", "never", "one_second"]
