"""A site with the hooks of Slurm, which tests call as slurmctld does."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HOOKS = Path(__file__).resolve().parents[2] / "scheduler_plugin" / "hooks"
POOL = 8
DAEMONS = "".join(f"io{number} ofi+tcp://10.0.0.{number}:50000\n" for number in range(1, POOL + 1))


@dataclass(frozen=True)
class Site:
    """A site with settings, daemons, and a script that notes each of its calls."""

    folder: Path
    shell: str

    @property
    def jobs(self) -> Path:
        return self.folder / "jobs"

    @property
    def hooks(self) -> Path:
        """The hooks as they are installed, with their settings beside them."""
        return self.folder / "hooks"

    @property
    def conf(self) -> Path:
        return self.hooks / "hooks.conf"

    def configure(self, **values: object) -> None:
        self.conf.write_text("".join(f"{name}='{value}'\n" for name, value in values.items()))

    def use_script(self) -> None:
        self.configure(SITE_SCRIPT=self.folder / "site.sh", JOBS_FOLDER=self.jobs)

    def use_gekkofwd(self, daemons: str = DAEMONS) -> None:
        (self.folder / "daemons").write_text(daemons)
        (self.folder / "slurm.conf").write_text("ClusterName=none\nSlurmctldHost=localhost\n")
        self.configure(GEKKOFWD_DAEMONS=self.folder / "daemons", JOBS_FOLDER=self.jobs)
        with self.conf.open("a") as file:
            file.write(
                f"export SLURM_CONF={self.folder}/slurm.conf\nPATH={self.folder}/bin:$PATH\n"
            )
        # There is no slurmctld, and squeue would wait for it.
        (self.folder / "bin").mkdir(exist_ok=True)
        write_program(self.folder / "bin" / "squeue", "#!/bin/sh\nexit 1\n")

    def call(self, hook: str, job: int, **environment: str) -> subprocess.CompletedProcess[str]:
        """Call a hook as slurmctld does: without PATH and other variables of slurmctld."""
        return subprocess.run(
            [f"/bin/{self.shell}", *options_of(self.hooks / hook), str(self.hooks / hook)],
            env={
                "SLURM_JOB_ID": str(job),
                **{
                    name if name.startswith(("ION", "PATH", "BASH")) else f"SLURM_{name}": value
                    for name, value in environment.items()
                },
            },
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            # As slurmctld does: `kill 0` in a hook ends the hook alone.
            start_new_session=True,
        )

    def prolog(
        self, job: int, licences: str, nodes: str = "n[1-4]"
    ) -> subprocess.CompletedProcess[str]:
        return self.call("prolog_slurmctld.sh", job, JOB_LICENSES=licences, JOB_NODELIST=nodes)

    def epilog(
        self, job: int, licences: str, nodes: str = "n[1-4]"
    ) -> subprocess.CompletedProcess[str]:
        return self.call("epilog_slurmctld.sh", job, JOB_LICENSES=licences, JOB_NODELIST=nodes)

    def tells_tasks(self, job: int, **environment: str) -> dict[str, str]:
        """Variables that TaskProlog sets in a process's environment."""
        done = self.call("task_prolog.sh", job, **environment)
        assert done.returncode == 0
        lines = done.stdout.splitlines()
        assert all(line.startswith("export ") for line in lines)
        return dict(line.removeprefix("export ").split("=", 1) for line in lines)

    def calls(self) -> list[str]:
        log = self.folder / "calls"
        return log.read_text().splitlines() if log.exists() else []

    def daemons_of(self, job: int) -> list[str]:
        return (self.jobs / f"{job}.hosts").read_text().splitlines()

    def files(self) -> set[str]:
        """The files of single jobs."""
        return {path.name for path in self.jobs.iterdir()} - {"lock", "history", "history.old"}


def options_of(script: Path) -> list[str]:
    """Options of the shell in the program's first line."""
    return script.read_text().splitlines()[0].removeprefix("#!/bin/sh").split()


def write_program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def site_in(folder: Path, shell: str) -> Site:
    """Install the hooks in a folder, with a script that notes its calls."""
    (folder / "jobs").mkdir()
    (folder / "hooks").mkdir()
    for script in (*HOOKS.glob("*.sh"), *HOOKS.glob("*.awk")):
        shutil.copy(script, folder / "hooks")
    write_program(
        folder / "site.sh",
        f'#!/bin/sh\necho "$@" >>{folder}/calls\n[ ! -e {folder}/broken ]\n',
    )
    return Site(folder, shell)
