"""torch._inductor.config: any setting is taken, and says once that it has no effect."""

import sys

from prong._settings_without_effect import without_effect

without_effect(sys.modules[__name__], "the default back end of prong has no settings")
