"""The next step after each command, for people who see its output on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ioncast_base.command_options import suggest

_PREDICT = "`ioncast predict LOG --system SYSTEM` predicts an application"
_CHECK = "`ioncast experiment check` compares the published tables with the measurements"
# None: the command runs until it is stopped, or nothing follows.
NEXT_STEPS: dict[str, str | None] = {
    "phases": "`ioncast match LOG` prints the benchmarks that do the same I/O",
    "characterize": "`ioncast check LOG` tells what is harmful, and what to do",
    "check": "`--html FILE` writes a page with all snippets; `ioncast predict LOG --system SYSTEM`"
    " tells how many I/O nodes the application needs",
    "timeline": "`ioncast check LOG` tells which of it is slow, and why",
    "layers": "`ioncast layers LOG participants` tells which calls are aggregated; `--html FILE`"
    " draws them",
    "trace": "`--html FILE` draws which ranks read and wrote when; `ioncast check LOG --details`"
    " tells more",
    "sql": "`ioncast sql --list` lists the queries; `ioncast check LOG` tells why a run is slow",
    "ingest": "`ioncast sql STORE --list` lists what it can be asked",
    "servers import": "`ioncast store info STORE` shows the samples of the store",
    "store info": "`ioncast sql STORE --list` lists what it can be asked",
    "store remove": "`ioncast store info STORE` shows what is left",
    "survey": "`--html FILE` writes a page; `ioncast check LOG` tells why a run is slow",
    "interference": "`--html FILE` writes a page; `ioncast survey` describes all jobs of a store",
    "worth": "`--html FILE` writes a page; `ioncast campaign plan --from-logs FOLDER --platform"
    " FILE` lists the benchmarks that are missing",
    "diagnose": "`--html FILE` writes a page; `ioncast check LOG` tells what the application could"
    " do better",
    "match": "run these lines; `ioncast bench import FILE --system SYSTEM --io-nodes N` stores"
    " their results",
    "predict": "`--explain` gives the reasons; `ioncast validate` compares with measured reruns",
    "advise": "`ioncast check LOG` prints the findings with snippets to follow the advice",
    "validate": "`ioncast campaign plan --from-logs FOLDER --platform FILE` lists what to measure",
    "model fit": _PREDICT,
    "model show": _PREDICT,
    "bench import": _PREDICT,
    "bench list": "`ioncast bench show ID` shows the curves of a configuration, `ioncast bench"
    " import` adds measurements",
    "bench show": "`ioncast bench coverage` tells where measurements are missing or old",
    "bench coverage": "`ioncast campaign plan --from-logs FOLDER --platform FILE` lists what to"
    " measure",
    "bench rates": _PREDICT,
    "bench export": "`ioncast bench import FILE --db OTHER` restores it in another database",
    "campaign plan": "`ioncast campaign run CAMPAIGN --platform FILE` measures it",
    "campaign run": "`ioncast campaign report FOLDER` shows its curves",
    "campaign status": "`ioncast campaign resume FOLDER` continues a campaign that stopped",
    "campaign resume": "`ioncast campaign report FOLDER` shows its curves",
    "campaign report": _PREDICT,
    "doctor": "`ioncast slurm check` looks at everything beside Slurm",
    "history delete": None,
    "serve": None,
    "token add": "`ioncast token list` names all tokens",
    "token list": "`ioncast token add NAME --role ROLE` makes one, `ioncast token revoke NAME`"
    " makes it invalid",
    "token revoke": "`ioncast token list` names all tokens",
    "decisions pause": "`ioncast decisions resume SYSTEM` ends the pause",
    "decisions resume": "`ioncast decisions list` shows all systems",
    "decisions list": "`ioncast decisions pause SYSTEM` stops the decisions for a system",
    "system changed": "`ioncast campaign plan --from-logs FOLDER --platform FILE` lists what to"
    " measure again",
    "system show": "`ioncast system changed SYSTEM --since DATE --why TEXT` notes a change of the"
    " machine",
    "system undo": "`ioncast system show SYSTEM` shows what counts",
    "why": None,
    "allocate": "`ioncast slurm arbitrate` does this for the waiting jobs of Slurm",
    "slurm setup": None,
    "slurm watch": None,
    "slurm arbitrate": None,
    "slurm check": None,
    "slurm import-history": "`ioncast slurm watch` goes on with the jobs that end from now on",
    "platform up": "`ioncast platform exec --io-nodes N -- COMMAND` runs a program on it",
    "platform status": "`ioncast platform down` removes it",
    "platform exec": None,
    "platform down": None,
    "experiment single": _CHECK,
    "experiment periodic": _CHECK,
    "experiment hacc": _CHECK,
    "experiment applications": _CHECK,
    "experiment placement": _CHECK,
    "experiment resume": _CHECK,
    "experiment interference": _CHECK,
    "experiment background": _CHECK,
    "experiment files": _CHECK,
    "experiment change": _CHECK,
    "experiment check": None,
    "experiment scheduling": "`ioncast slurm arbitrate` does this for the waiting jobs of Slurm",
}


def suggest_next(words: Sequence[str]) -> None:
    """Suggest the step after a command that ended well.

    Nothing is printed unless standard output and standard error are terminals, or after `--help`.
    """
    if "--help" in words or not (sys.stdout.isatty() and sys.stderr.isatty()):
        return
    step = NEXT_STEPS.get(" ".join(words[:2])) or NEXT_STEPS.get(" ".join(words[:1]))
    if step is not None:
        suggest(step)
