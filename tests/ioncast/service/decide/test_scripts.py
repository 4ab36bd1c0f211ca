"""Job scripts in the style of the manuals of Slurm, LSF, PBS, Cray and csh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ioncast.service.decide.scripts import MOST_PROGRAMS, programs
from tests.support.examples import examples

SLURM = r"""#!/bin/bash -l
#SBATCH --job-name=ocean
#SBATCH --nodes=16 --ntasks-per-node=48
#SBATCH --output=ocean-%j.out   # srun is not launched here

set -euo pipefail
module purge; module load intel/2023 hdf5
export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
ulimit -s unlimited
cd "$SLURM_SUBMIT_DIR" || exit 1
echo "it's $(date "+%F") on $(hostname); srun follows"

EXE=/apps/nemo/4.2/bin/nemo.exe
srun --mpi=pmix --cpu-bind=cores \
     --distribution=block:block -n "$SLURM_NTASKS" \
     "$EXE" > nemo.log 2>&1
sleep 5
"""
LSF = r"""#!/bin/bash
#BSUB -P ABC123
#BSUB -W 2:00
#BSUB -nnodes 4
jsrun -n 24 -r 6 -a 1 -c 7 -g 1 -bpacked:7 /gpfs/alpine/proj/abc123/s3d.x < input.nml
"""
PBS = r"""#!/bin/csh
#PBS -l select=4:ncpus=32:mpiprocs=32
#PBS -N qcd
setenv MPICH_VERSION_DISPLAY 1
cd $PBS_O_WORKDIR
if ( -e restart.dat ) then
    echo restarting
endif
aprun -n 128 -N 32 ./milc.x restart.dat
"""
OPEN_MPI = r"""#PBS -q batch
cat $PBS_NODEFILE | sort | uniq > hosts
/opt/openmpi/bin/mpirun --mca btl ^openib -np 64 --hostfile hosts -x PATH ./wrf.exe
"""
MPMD = "mpiexec -n 1 ./coupler : -n 32 ./atmosphere -v : -n 16 ./ocean\n"
LOOP = r"""#!/bin/bash
for size in 64k 1m
do
  if srun -n 4 ./ior -t $size; then
    echo done; else echo failed >&2; fi
done
while read -r line; do :; done < list
"""
BACKGROUND = "srun -n 1 ./writer & srun -n 1 ./reader &\nwait\n(./serial | tee log) && ./after\n"
CONTAINER = (
    "srun -n 8 apptainer exec --bind /scratch:/data image.sif /opt/app/run_md -s topol.tpr\n"
)
PREFIXED = """\
time nice -n 10 ./a.out
OMP_NUM_THREADS=4 numactl --membind 0 ./b.out
env X=1 ./c.out
nohup stdbuf -oL ./d.out &
exec ./e.out
"""
INTERPRETED = """\
python3 -u train.py --epochs 3
srun -n 4 python -m mpi4py steps/simulate.py
Rscript --vanilla plot.R
bash ./inner.sh
"""
HERE_DOCUMENTS = """\
cat > input <<EOF
srun ./not-this
EOF
cat <<-'END OF' > more
\tmpirun ./nor-that
\tEND OF
tr a b <<< "x"
./solver < input
"""
VARIABLES = """\
DIR=/opt/code
RUN="mpirun -np 16 --oversubscribe"
APP="$DIR/bin/main"
APP+=".x"
${RUN} ${APP} case.in
$DIR/bin/check
$UNKNOWN
$HOME/bin/mine
${2:-./default}
"""
IN_A_TEXT = """srun bash -lc 'cd run; ./step1 && exec ./step2'\neval "$X mpirun ./step3"\n"""
FUNCTION = "main() {\n  local exe=./inside\n  srun $exe\n}\nmain\n"
WINDOWS = "#!/bin/bash\r\nsrun -n 2 \\\r\n  ./app in.dat\r\n./next\r\n"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (SLURM, ["/apps/nemo/4.2/bin/nemo.exe"]),
        (LSF, ["/gpfs/alpine/proj/abc123/s3d.x"]),
        (PBS, ["./milc.x", "restart.dat"]),
        (OPEN_MPI, ["./wrf.exe"]),
        (MPMD, ["./coupler", "./atmosphere", "./ocean"]),
        (LOOP, ["./ior"]),
        (BACKGROUND, ["./writer", "./reader", "./serial", "./after"]),
        (CONTAINER, ["image.sif", "/opt/app/run_md", "topol.tpr"]),
        (PREFIXED, ["./a.out", "./b.out", "./c.out", "./d.out", "./e.out"]),
        (
            INTERPRETED,
            [
                *("python", "mpi4py", "steps/simulate.py"),
                *("python3", "train.py", "Rscript", "plot.R", "bash", "./inner.sh"),
            ],
        ),
        (HERE_DOCUMENTS, ["cat", "tr", "./solver"]),
        (VARIABLES, ["/opt/code/bin/main.x", "case.in", "/opt/code/bin/check", "mine"]),
        (IN_A_TEXT, ["./step1", "./step2", "./step3"]),
        (FUNCTION, ["./inside", "main"]),
        (WINDOWS, ["./app", "in.dat", "./next"]),
    ],
)
def test_the_programs_of_a_script_are_found_those_of_launchers_first(
    script: str, expected: list[str]
) -> None:
    assert [program for program in programs(script) if program in expected] == expected


@pytest.mark.parametrize(
    ("script", "nothing"),
    [
        (SLURM, {"srun", "is", "module", "cd", "echo", "date", "hostname", "exit", "nemo.log"}),
        (LSF, {"jsrun", "input.nml"}),
        (OPEN_MPI, {"mpirun", "#PBS"}),
        (LOOP, {"done", "echo", "read", "for", "size", "64k", "list"}),
        (HERE_DOCUMENTS, {"./not-this", "./nor-that", "EOF", "x", "input"}),
        (VARIABLES, {"RUN", "$UNKNOWN", "-np"}),
        (CONTAINER, {"srun", "apptainer", "--bind"}),
        (FUNCTION, {"local"}),
    ],
)
def test_words_that_cannot_be_programs_are_left_out(script: str, nothing: set[str]) -> None:
    assert not set(programs(script)) & nothing


@pytest.mark.parametrize(
    "launcher", ["srun", "mpiexec.hydra", "/opt/x/mpirun_rsh", "ibrun", "prun"]
)
def test_every_word_after_a_launcher_but_options_and_numbers_may_be_the_program(
    launcher: str,
) -> None:
    line = f"{launcher} -n 64 --map-by core -host n[1-4] ./app --fast in.dat 7 2,4 X=1 > out.txt"
    assert programs(line) == ["core", "n[1-4]", "./app", "in.dat"]


def test_a_program_that_is_launched_twice_is_one_candidate() -> None:
    assert programs("./a\n./b\n./a\n") == ["./a", "./b"]


def test_a_launcher_after_a_tool_is_a_launcher() -> None:
    found = programs("map --profile srun -n 4 ./app")
    assert found == ["./app", "map"]


@pytest.mark.parametrize(
    "script",
    ["", "\n\n", "#SBATCH -n 4", "'", '"', "\\", "$(", "`", "<<", "srun", "a=1", "\0", "{"],
)
def test_a_script_without_programs_has_none(script: str) -> None:
    assert programs(script) == []


@pytest.mark.parametrize("quote", ["'", '"', "$(", "`", "${"])
def test_a_quote_without_an_end_hides_nothing_before_it(quote: str) -> None:
    assert programs(f"srun ./app\n./other {quote} more\n./last")[:2] == ["./app", "./other"]


def test_a_text_over_many_lines_hides_no_command_behind_it() -> None:
    awk = "awk '\n" + "{ if ($1 > 3) print $2 }\n" * 30 + "' table > sorted\n"
    assert programs(f"{awk}srun ./app\n") == ["./app", "awk"]
    stray = "echo don't\n" + "cp a b\n" * 20 + "srun ./app\n"
    assert programs(stray) == ["./app", "cp"]


@pytest.mark.parametrize(
    "script",
    [
        "python3 ./prep\nsrun ./app in.dat\n",
        "./prep\n./mesh && mpiexec -n 4 ./app\n",
        "./prep a b\nsrun sh -c './app | tee log'\n",
        "./prep\neval 'mpirun ./app'\n",
        "./prep\n" + "\n".join(f"./p{number}" for number in range(200)) + "\nsrun ./app\n",
    ],
)
def test_launched_programs_come_before_those_that_prepare_them(script: str) -> None:
    found = programs(script)
    assert found.index("./app") < found.index("./prep")


def test_of_a_long_script_the_first_lines_are_read() -> None:
    data = "x" * 79 + "\n"
    script = "srun ./app\n./after <<END\n" + data * 20_000 + "END\n./last\n"
    assert programs(script) == ["./app", "./after"]
    # A name at the cut does not become a shorter name.
    assert programs("srun ./app\n" + "./application\n" * 10_000) == ["./app", "./application"]


def test_there_are_at_most_so_many_candidates() -> None:
    found = programs("\n".join(f"./program{number}" for number in range(1000)))
    assert found == [f"./program{number}" for number in range(MOST_PROGRAMS)]


SNIPPETS = st.sampled_from(
    [
        *(
            "srun ",
            "mpirun -np 4 ",
            "./app ",
            "$X ",
            '"',
            "'",
            "\\",
            "`",
            "$(",
            ")",
            "((",
            "${",
            "}",
        ),
        *("<<EOF\n", "EOF\n", "<<-'x'\n", "\n", ";", "&", "|", "> ", "2>&1 ", "# ", "X=", "X+="),
        *("if ", "then ", "for ", "bash -c ", "eval ", "export ", "time ", "python3 ", ":", " "),
    ]
)


@given(st.lists(SNIPPETS | st.text(max_size=5), max_size=60).map("".join))
@settings(max_examples=examples(500))
def test_any_text_is_read_without_an_error(script: str) -> None:
    found = programs(script)
    assert len(found) == len(set(found)) <= MOST_PROGRAMS
    assert all(program.isprintable() and " " not in program for program in found)


def test_bash_and_we_run_the_same_programs_of_a_script(tmp_path: Path) -> None:
    """Each program is replaced by one that writes its own name into a log."""
    script = """\
A=one
srun -n 2 $A &
wait
if mpirun -np 1 three; then mpirun ${C:-four}; fi
for i in 1 2; do srun five $i; done 2> /dev/null | cat
cat <<END > /dev/null
srun never
END
true && ( srun six ) || srun seven
"""
    log = tmp_path / "log"
    for name in ("srun", "mpirun"):
        stub = tmp_path / name
        stub.write_text(
            f"#!/bin/sh\nfor word; do case $word in [a-z]*) echo $word >> {log};; esac; done\n"
        )
        stub.chmod(0o755)
    subprocess.run(
        ["bash", "--norc", "-c", script], check=True, env={"PATH": f"{tmp_path}:/usr/bin:/bin"}
    )
    # Bash did not reach these two commands, but could have.
    assert set(programs(script)) == {*log.read_text().split(), "cat", "seven"}


def calls(script: str) -> int:
    """Count the functions that reading a script calls, including the interpreter's."""
    counted = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        programs(script)
    finally:
        sys.setprofile(before)
    return counted


HOSTILE = [
    *("a ", "\\a", '"', '\\"', "'", "$x ", "${", "$(", "`", "<<A\n", "<<'", "((", ")", "srun "),
    *("x=$x$x;", "x+=$x;", "$A", "#", "# \n", "bash -c 'x';", "<<A\nA\n", "-a ", "\0", "1"),
    *("eval eval ", "'\"' \"", "\\'\"'\\", "a\\\n", "env $A\n", "srun $A\n"),
    *("srun -n 4 ./a$B\n", '"$x', "x;", "x=1 y "),
]


def repeated(piece: str, length: int) -> str:
    return f"A='{'b ' * 500}'\n" + piece * (length // len(piece))


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_script_costs_more_than_some_hundred_lines(piece: str) -> None:
    # Forty lines of a usual script take 1,900 calls.
    assert calls(repeated(piece, 64_000)) < 120_000


def test_some_hundred_lines_of_commands_are_read_and_any_number_of_comments() -> None:
    line = "cp -r $HOME/case.$SLURM_JOB_ID/input.dat work/\n"
    comments = "# A long explanation, as scripts have them.\n" * 500
    assert "./app" in programs("#!/bin/bash\n" + comments + line * 150 + "srun ./app\n")
    assert "./app" in programs("srun ./app\n" + line * 1_000)


def test_no_word_is_read_again_and_again() -> None:
    """An expression that can match a word in many ways would never finish a long word."""
    words = [
        f"{before}{piece * 900}! x"
        for before in ("srun", "python", "mpirun.", "A=", "sh -c ", "$")
        for piece in ("_", "-", ".", "_a", "a", "1.", "=", "{", "${", "/")
    ]
    program = (
        "import sys; from ioncast.service.decide.scripts import programs\n"
        "for script in sys.stdin: programs(script)"
    )
    command = [sys.executable, "-c", program]
    subprocess.run(command, input="\n".join(words), check=True, timeout=120, text=True)
