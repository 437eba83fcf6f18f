# What `import agenteval_tui as agenteval` gives, for type checkers: a wheel has this as agenteval_tui/__init__.pyi. In
# the checkout it would put the whole package on one circle of imports.
from agenteval_tui.api import (
    AgentevalError as AgentevalError,
)
from agenteval_tui.api import (
    Change as Change,
)
from agenteval_tui.api import (
    Comparison as Comparison,
)
from agenteval_tui.api import (
    Criterion as Criterion,
)
from agenteval_tui.api import (
    DraftedTest as DraftedTest,
)
from agenteval_tui.api import (
    Execution as Execution,
)
from agenteval_tui.api import (
    Forks as Forks,
)
from agenteval_tui.api import (
    Grade as Grade,
)
from agenteval_tui.api import (
    History as History,
)
from agenteval_tui.api import (
    Run as Run,
)
from agenteval_tui.api import (
    Suite as Suite,
)
from agenteval_tui.api import (
    check_change as check_change,
)
from agenteval_tui.api import (
    compare as compare,
)
from agenteval_tui.api import (
    fork as fork,
)
from agenteval_tui.api import (
    grade as grade,
)
from agenteval_tui.api import (
    import_runs as import_runs,
)
from agenteval_tui.api import (
    load as load,
)
from agenteval_tui.api import (
    make_test as make_test,
)
from agenteval_tui.api import (
    record as record,
)
from agenteval_tui.api import (
    replay as replay,
)
from agenteval_tui.api import (
    run as run,
)
from agenteval_tui.api import (
    why as why,
)
from agenteval_tui.core.version import __version__ as __version__
from agenteval_tui.extensions.blame.api import (
    Blame as Blame,
)
from agenteval_tui.extensions.blame.api import (
    blame as blame,
)
from agenteval_tui.extensions.otel.api import (
    Listening as Listening,
)
from agenteval_tui.extensions.otel.api import (
    listen as listen,
)
from agenteval_tui.extensions.shrink.api import (
    Shrunk as Shrunk,
)
from agenteval_tui.extensions.shrink.api import (
    shrink as shrink,
)
from agenteval_tui.extensions.suggest.api import (
    Suggested as Suggested,
)
from agenteval_tui.extensions.suggest.api import (
    suggest as suggest,
)
