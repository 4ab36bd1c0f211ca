from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ioncast_base.errors import InputError
from ior_configs import IorConfig

MIB = 1 << 20


def from_words(text: str) -> IorConfig:
    return IorConfig.from_args(text.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-w -b 16m", IorConfig(write=True, block_size=16 * MIB)),
        ("-w -b=16m", IorConfig(write=True, block_size=16 * MIB)),
        ("-w -b16m", IorConfig(write=True, block_size=16 * MIB)),
        ("-wb 16m", IorConfig(write=True, block_size=16 * MIB)),
        ("-w -O blockSize=16m", IorConfig(write=True, block_size=16 * MIB)),
        ("-O BLOCKSIZE=16M,writeFile=1", IorConfig(write=True, block_size=16 * MIB)),
        ("-wr", IorConfig(write=True, read=True)),
        ("-w -r=0", IorConfig(write=True)),
        ("-w=1 -r=1 -w=0", IorConfig(read=True)),
        ("", IorConfig(write=True, read=True)),
        ("-w=0", IorConfig(write=True, read=True)),
        ("-w -c", IorConfig(write=True, collective=True)),
        ("-w --collective", IorConfig(write=True, collective=True)),
        ("-w --collective=0", IorConfig(write=True)),
        ("-r -z", IorConfig(read=True, random_offsets=1)),
        ("-r -z -z", IorConfig(read=True, random_offsets=2)),
        ("-r -zz", IorConfig(read=True, random_offsets=2)),
        ("-r -z=2", IorConfig(read=True, random_offsets=2)),
        ("-r -zzz", IorConfig(read=True, random_offsets=2)),
        ("-r -a mpiio", IorConfig(read=True, api="MPIIO")),
        ("-r -O api=mpiio,segmentCount=4", IorConfig(read=True, api="MPIIO", segments=4)),
        (
            "-r -i 2 -i 3 -d=5 -m",
            IorConfig(read=True, repetitions=3, inter_test_delay=5, multi_file=True),
        ),
        (
            "-r -CegkF",
            IorConfig(
                read=True,
                reorder_tasks=True,
                fsync="end",
                intra_test_barriers=True,
                keep_file=True,
                file_per_process=True,
            ),
        ),
        ("-w -O useO_DIRECT=1", IorConfig(write=True, odirect=True)),
        ("-w --posix.odirect", IorConfig(write=True, odirect=True)),
        ("-w -B", IorConfig(write=True, odirect=True)),
        ("-w -o=/a=b", IorConfig(write=True, test_file="/a=b")),
        ("-w -o -x", IorConfig(write=True, test_file="-x")),
        (
            "-w -O testFile=f,summaryformat=json",
            IorConfig(write=True, test_file="f", summary_format="JSON"),
        ),
        ("-w -O summaryFormat=CSV#comment", IorConfig(write=True, summary_format="CSV")),
        ("-w -N 8", IorConfig(write=True, tasks=8)),
        ("-w -A=1 -G -5 -v", IorConfig(write=True, other_options=("-A=1", "-G", "-5", "-v"))),
        ("-vwv", IorConfig(write=True, other_options=("-v", "-v"))),
        (
            "-w --dfs.pool=p --dfs.cont c -H",
            IorConfig(write=True, other_options=("--dfs.pool=p", "--dfs.cont", "c", "-H")),
        ),
        (
            "-w -O summaryFile=x,fsync=1",
            IorConfig(write=True, fsync="end", other_options=("-O", "summaryFile=x")),
        ),
        ("-w -R", IorConfig(write=True, read=True, other_options=("-R",))),
    ],
)
def test_every_spelling_ior_accepts_is_read(text: str, expected: IorConfig) -> None:
    assert from_words(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "-b",
        "-b=",
        "-b 16x",
        "-b -16m",
        "-b 1.5m",
        "-i two",
        "-i -1",
        "-i 0",
        "-d -1",
        "-s 0",
        "-w=-1",
        "-w=yes",
        "-L",
        "-",
        "--",
        "file",
        "-w > out.txt",
        "-O",
        "-O blockSize",
        "-O blockSize=",
        "-O blockSize=16m,",
        "-O summaryFormat=XML",
        "-o/tmp/a=b",
        "-t 0",
        "-b 0",
        "-t 12 -b 24",
        "-t 1m -b 1536k",
        "-t 2m -b 1m",
        "-C -z",
        "-a HDF5 -z",
        "-a NCMPI -F",
        "-W",
        "-N 0",
    ],
)
def test_options_that_ior_rejects_or_misreads_are_errors(text: str) -> None:
    with pytest.raises(InputError):
        from_words(text)


def test_ior_4_rejects_shuffling_of_one_request_which_ior_3_accepted() -> None:
    assert from_words("-w -z -b 64k -t 64k").problems() != []
    assert from_words("-w -z -z -b 64k -t 64k").problems() == []


@pytest.mark.parametrize(
    ("text", "tasks", "nodes"),
    [
        ("ior -w", None, None),
        ("./ior", None, None),
        ("/opt/ior/bin/ior -w", None, None),
        ("mpiexec -n 32 -genv LD_PRELOAD libdarshan.so ior -w", 32, None),
        ("mpiexec -n 16 -genv IOR_HINT__MPI__cb_config_list '*:4' ior -w", 16, None),
        ("mpirun -np 16 -ppn 4 --wdir /scratch/ior ./ior -w", 16, 4),
        ("srun -n 64 -N 8 ior -w", 64, 8),
        ("srun --ntasks=64 --nodes=8 ior -w", 64, 8),
        ("srun -N8 --ntasks-per-node=2 ior -w", 16, 8),
        ("env A=1 /usr/bin/mpiexec -n 4 -x PATH=/opt/ior ior -w", 4, None),
        ("mpiexec -n 32 ior -w -N 8", 8, None),
        ("aprun -n 12 -N 5 ior -w", 12, 3),
        ("aprun --pes 12 --pes-per-node=4 ior -w", 12, 3),
        ("jsrun -n 4 -a 8 -c 8 -r 2 ior -w", 32, 2),
        ("jsrun --nrs=6 --tasks_per_rs=1 ior -w", 6, None),
        ("jsrun -n6 -r6 -g1 ior -w", 6, 1),
        ("jsrun -n 3 -r 1 -p 12 ior -w", 12, 3),
        ("flux run -n 64 -N 8 ior -w", 64, 8),
        ("flux mini run --ntasks=64 --nodes=8 ior -w", 64, 8),
        ("flux run -N2 --tasks-per-node=4 ior -w", 8, 2),
        ("flux run ior -w", None, None),
        ("srun -N 4 -n 4 flux start flux run -n 64 -N 4 ior -w", 64, 4),
        ("ibrun -n 32 -o 0 ior -w", 32, None),
        ("ibrun ior -w", None, None),
        ("prun -n 8 ior -w", 8, None),
        ("prun --np 8 -x A=1 ior -w", 8, None),
        ("mpirun.mpich -np 8 ior -w", 8, None),
        ("/usr/bin/mpirun.openmpi -np 8 -npernode 2 ior -w", 8, 4),
        ("mpiexec.hydra -ppn 4 -n 8 ior -w", 8, 2),
        ("mpirun_rsh -np 8 a b ior -w", 8, None),
        ("orterun --np 8 ior -w", 8, None),
    ],
)
def test_the_launcher_has_tasks_and_nodes(text: str, tasks: int | None, nodes: int | None) -> None:
    config = IorConfig.from_command_line(text)
    assert (config.tasks, config.nodes) == (tasks, nodes)


@pytest.mark.parametrize(
    "text",
    ["", "hacc_io 1000", "ior -o 'x", "mpiexec -n ior -w", "mpiexec -n x ior -w", "-w -b 1m"],
)
def test_a_command_line_without_a_usable_ior_is_an_error(text: str) -> None:
    with pytest.raises(InputError):
        IorConfig.from_command_line(text)


def test_the_command_line_is_quoted_for_a_shell() -> None:
    config = IorConfig(write=True, test_file="/tmp/a b", tasks=4)  # noqa: S108
    expected = "ior -a POSIX -w -b 1m -t 256k -o '/tmp/a b'"
    assert config.command_line() == expected
    assert config.command_line(launcher=True) == f"mpiexec -n 4 {expected}"


@pytest.mark.parametrize(
    ("text", "access", "layout", "spatiality"),
    [
        ("mpiexec -n 32 ior -w -b 32m -t 2m", "shared", "contiguous", "contiguous"),
        ("mpiexec -n 64 ior -w -F -b 16m -t 4m", "unique", "contiguous", "contiguous"),
        ("mpiexec -n 64 ior -w -F -b 4m -t 4m -s 9", "unique", "contiguous", "contiguous"),
        ("mpiexec -n 24 ior -w -b 512k -t 512k -s 4", "shared", "1d-strided", "sequential"),
        ("ior -w -b 512k -t 512k -s 4", "shared", "1d-strided", "sequential"),
        ("mpiexec -n 1 ior -w -b 512k -t 512k -s 4", "unique", "contiguous", "contiguous"),
        ("mpiexec -n 16 ior -w -z -b 16m -t 64k", "shared", "random", "random"),
        ("mpiexec -n 16 ior -a MPIIO -w -b 256k -t 256k -s 64", "shared", "1d-strided", "unknown"),
        ("mpiexec -n 16 ior -a MPIIO -w -c -b 16m -t 1m", "shared", "contiguous", "collective"),
        ("mpiexec -n 16 ior -w -b 2m -t 1m -s 64", "shared", "1d-strided", "sequential"),
        ("mpiexec -n 16 ior -w -b 4m -t 1m -s 2", "shared", "1d-strided", "contiguous"),
        ("mpiexec -n 16 ior -w -b 4m -t 1m -s 64", "shared", "1d-strided", "sequential"),
        ("mpiexec -n 16 ior -w -b 5m -t 1m -s 64", "shared", "1d-strided", "contiguous"),
    ],
)
def test_the_pattern_has_the_words_of_darshan(
    text: str, access: str, layout: str, spatiality: str
) -> None:
    config = IorConfig.from_command_line(text)
    assert (config.file_access, config.layout, config.spatiality) == (access, layout, spatiality)


def test_one_operation_can_be_singled_out() -> None:
    both = from_words("-w -r -R -W -v")
    assert both.operation == "write+read"
    assert both.for_operation("write") == from_words("-w -W -v")
    assert both.for_operation("read") == from_words("-r -R -v")
    with pytest.raises(InputError):
        both.for_operation("write+read")


def test_the_pattern_has_no_options_that_only_control_the_run() -> None:
    config = from_words("-w -C -e -g -k -i 3 -m -d 2 -o f -O summaryFormat=CSV --posix.odirect -v")
    assert config.pattern() == from_words("-w -C -e -g --posix.odirect")


@pytest.mark.parametrize(
    ("text", "fsync"),
    [
        ("-w", "none"),
        ("-w -e", "end"),
        ("-w -Y", "each"),
        ("-w -e -Y", "each"),
        ("-w -eY", "each"),
        ("-w -O fsync=1", "end"),
        ("-w -O fsyncPerWrite=1", "each"),
        ("-w -Y=0 -e", "end"),
        ("-w -e -O fsync=0", "none"),
    ],
)
def test_fsync_is_at_the_end_or_after_each_write(text: str, fsync: str) -> None:
    assert from_words(text).fsync == fsync
    assert from_words(text).pattern().fsync == fsync


def test_an_unknown_fsync_has_no_option() -> None:
    config = replace(from_words("-w -e"), fsync=None)
    assert config.to_args() == from_words("-w").to_args()
    assert config.pattern().fsync is None
    with pytest.raises(InputError):
        IorConfig(fsync="always")


@pytest.mark.parametrize(
    ("spellings", "conditions"),
    [
        (["-r -Z", "-r -O reorderTasksRandom=1", "-r -Z -X 5", "-r -Z=1"], ("-Z",)),
        (["-r -Z -Z", "-r -Z=2", "-r -ZZ"], ("-Z=2",)),
        (["-r -Z -Q 2", "-r -Q=2 -O reorderTasksRandom=1"], ("-Q 2", "-Z")),
        (["-r -C -Q 2", "-r -C -O taskPerNodeOffset=2"], ("-Q 2",)),
        (["-w -M 75%", "-w -M=75%", "-w -O memoryPerNode=75%"], ("-M 75%",)),
        (["-w -M 2g", "-w -M 2048m", "-w -O memoryPerNode=2147483648"], ("-M 2g",)),
        (["-w -O memoryPerTask=1g", "-w -O MEMORYPERTASK=1024m"], ("-O memoryPerTask=1g",)),
        (["-w -E", "-w -O useExistingTestFile=1"], ("-E",)),
        (["-w -l i", "-w --dataPacketType=incompressible", "-w -linc"], ("-l incompressible",)),
        (["-w -a MPIIO -V", "-w -a MPIIO --mpiio.useFileView"], ("--mpiio.useFileView",)),
        (["-w -a MPIIO -p", "-w -a MPIIO -O preallocate=1"], ("--mpiio.preallocate",)),
        (["-w -a MPIIO -U h", "-w -a mpiio -O hintsFileName=h"], ("--mpiio.hintsFileName=h",)),
        (["-w -a HDF5 -n -J 1m", "-w -a HDF5 -O noFill=1,setAlignment=1024k"],
         ("--hdf5.noFill", "--hdf5.setAlignment=1m")),
        (["-w -O lustreStripeCount=4", "-w --posix.lustre.stripecount 4"],
         ("--posix.lustre.stripecount=4",)),
        (["-w -F -u -y", "-w -F -O uniqueDir=1,dualMount=1"], ("-u", "-y")),
        (["-w -z --randomPrefill 2m", "-w -z --randomPrefill=2048k"], ("--randomPrefill=2m",)),
        (["-w --dfs.oclass X --dfs.pool p", "-w --dfs.oclass=X --dfs.cont=c"], ("--dfs.oclass=X",)),
    ],
)  # fmt: skip
def test_spellings_of_a_condition_are_one(spellings: list[str], conditions: tuple[str]) -> None:
    found = [from_words(text).pattern() for text in spellings]
    assert [config.conditions for config in found] == [conditions] * len(spellings)
    assert len(set(found)) == 1
    assert IorConfig.from_args(found[0].to_args()) == found[0]


@pytest.mark.parametrize(
    "text",
    [
        # Defaults.
        "-r -Z=0", "-r -C -Q 1", "-w -l timestamp", "-w -M 0", "-w -E -E=0", "-w -a HDF5 -J 1",
        "-w -O lustreStartOST=-1,lustreStripeCount=0",
        # They have no effect on this operation, or with this interface.
        "-w -Z", "-w -C -Q 2", "-r -Q 2", "-r -E", "-w -V", "-w -p", "-w -U hints", "-w -n",
        # They control the run, its checks and its output.
        "-w -v -v -A 3 -G 5 -H -j 3 -K -q -T 5 -x -X 1 -W", "-w -r -R",
        "-w -D 300 -O stoneWallingWearOut=1 -O stoneWallingStatusFile=s",
        "-w --random-offset-seed=11 -O checkWrite=1,verbose=2,outlierThreshold=3",
        # No version of IOR obeys them.
        "-w -a MPIIO -P -S", "-w -a HDF5 -I",
    ],
)  # fmt: skip
def test_options_that_change_no_io_are_no_condition(text: str) -> None:
    assert from_words(text).pattern().conditions == ()


@pytest.mark.parametrize(
    "launch",
    [
        "mpiexec -n 16 -genv IOR_HINT__MPI__romio_cb_write enable -genv IOR_HINT__MPI__cb_nodes 4"
        " -genv IOR_HINT__MPI__cb_config_list '*:4'",
        "mpiexec -n 16 -env IOR_HINT__MPI__cb_nodes 4 -genv IOR_HINT__MPI__romio_cb_write=enable",
        "mpirun -np 16 -x IOR_HINT__MPI__cb_nodes=4 -x IOR_HINT__MPI__romio_cb_write=enable",
        "srun -n 16 --export=ALL,IOR_HINT__MPI__cb_nodes=4,IOR_HINT__MPI__romio_cb_write=enable",
        "IOR_HINT__MPI__romio_cb_write=enable IOR_HINT__MPI__cb_nodes=4 mpiexec -n 16",
        "mpiexec -n 16 env IOR_HINT__MPI__cb_nodes=4 IOR_HINT__MPI__romio_cb_write=enable",
    ],
)
def test_hints_of_mpi_io_are_read_from_the_environment_of_ior(launch: str) -> None:
    hinted = IorConfig.from_command_line(f"{launch} ior -a MPIIO -c -w -b 16m -t 1m")
    assert hinted.conditions == (
        "IOR_HINT__MPI__cb_nodes=4",
        "IOR_HINT__MPI__romio_cb_write=enable",
    )
    assert (hinted.tasks, hinted.aggregators) == (16, 4)
    assert IorConfig.from_command_line(hinted.command_line(launcher=True)) == hinted


def test_a_node_may_have_as_many_aggregators_as_asked_for() -> None:
    """ROMIO takes one process of each node unless `cb_config_list` allows more."""
    hinted = IorConfig(
        api="MPIIO",
        write=True,
        collective=True,
        tasks=32,
        conditions=("IOR_HINT__MPI__cb_nodes=8", "IOR_HINT__MPI__romio_cb_write=enable"),
    )
    places = "IOR_HINT__MPI__cb_config_list=*:"
    assert places + "8" in hinted.environment()
    assert places + "2" in replace(hinted, nodes=4).environment()
    assert not any(places in word for word in replace(hinted, nodes=8).environment())
    own = "IOR_HINT__MPI__cb_config_list=n1:2,*:1"
    listed = replace(hinted, conditions=(own, "IOR_HINT__MPI__cb_nodes=8"))
    assert listed.environment() == ["env", *listed.conditions]


def test_without_a_number_each_node_has_an_aggregator() -> None:
    hinted = IorConfig.from_command_line(
        "srun -n 32 -N 4 env IOR_HINT__MPI__romio_cb_read=enable ior -a MPIIO -c -r"
    )
    assert hinted.aggregators == 4


@pytest.mark.parametrize(
    ("hint", "options"),
    [
        ("romio_cb_write=enable", "-a POSIX -w"),
        ("romio_cb_write=enable", "-a MPIIO -w"),
        ("romio_cb_write=enable", "-a MPIIO -c -r"),
        ("romio_cb_write=automatic", "-a MPIIO -c -w"),
        ("cb_nodes=4", "-a MPIIO -w"),
        ("romio_ds_read=disable", "-a MPIIO -w"),
    ],
)
def test_hints_without_effect_are_no_condition(hint: str, options: str) -> None:
    hinted = IorConfig.from_command_line(f"env IOR_HINT__MPI__{hint} ior {options}")
    assert hinted == IorConfig.from_command_line(f"ior {options}")


@pytest.mark.parametrize("number", ["0", "-1", "x", "²", "9" * 5000])
def test_an_unusable_number_of_aggregators_tells_none(number: str) -> None:
    hints = f"IOR_HINT__MPI__cb_nodes={number} IOR_HINT__MPI__romio_cb_write=enable"
    hinted = IorConfig.from_command_line(f"mpiexec -n 16 env {hints} ior -a MPIIO -c -w")
    assert hinted.aggregators is None
    assert IorConfig.from_command_line(hinted.command_line(launcher=True)) == hinted


def test_a_damaged_hint_is_an_error() -> None:
    with pytest.raises(InputError, match="is not a hint of MPI-IO"):
        IorConfig.from_command_line("env IOR_HINT__MPI__cb_nodes= ior -a MPIIO -c -w")


def test_each_operation_has_its_own_conditions() -> None:
    both = from_words("-w -r -Z -E -M 1g")
    assert both.conditions == ("-E", "-M 1g", "-Z")
    assert both.for_operation("write").conditions == ("-E", "-M 1g")
    assert both.for_operation("read").conditions == ("-M 1g", "-Z")


def test_conditions_are_options_without_a_field() -> None:
    for text in ("-w", "-v", "-b 1m", "x", "--dfs.pool=p"):
        with pytest.raises(InputError):
            IorConfig(write=True, conditions=(text,))


def test_runs_with_and_without_an_fsync_after_each_write_are_different(shared_data: Path) -> None:
    with (shared_data / "live" / "manifest.csv").open(newline="") as file:
        runs = {row["name"]: row["command"] for row in csv.DictReader(file)}
    fsyncs = {
        name: IorConfig.from_command_line(command).pattern().fsync
        for name, command in runs.items()
        if command.startswith("ior ")
    }
    assert {name for name, fsync in fsyncs.items() if fsync == "each"} == {
        "fsync-each",
        "fsync-each-fpp",
    }
    assert {name for name, fsync in fsyncs.items() if fsync == "end"} == {
        "fsync-end",
        "fpp-fsync-end",
        "posix-strided-e",
    }


def test_other_options_cannot_hide_options_with_fields() -> None:
    for hidden in [("-w",), ("-b", "1m"), ("-O", "a=1,b=2"), ("-vv",), ("-Z",), ("-M", "1g")]:
        with pytest.raises(InputError):
            IorConfig(write=True, other_options=hidden)


@pytest.mark.parametrize("field", ["block_size", "segments", "repetitions", "tasks", "nodes"])
@pytest.mark.parametrize("value", [0, -8, 1 << 64])
def test_numbers_out_of_range_are_rejected(field: str, value: int) -> None:
    changes: dict[str, Any] = {field: value}
    with pytest.raises(InputError):
        replace(IorConfig(write=True, tasks=1), **changes)


def test_every_command_of_the_measured_runs_matches_the_run(shared_data: Path) -> None:
    with (shared_data / "runs" / "manifest.csv").open(newline="") as file:
        runs = [row for row in csv.DictReader(file) if " ior " in row["command"]]
    assert runs
    for run in runs:
        config = IorConfig.from_command_line(run["command"])
        assert config.tasks == int(run["nprocs"]), run["name"]
        assert config.api == run["api"]
        assert config.file_access == run["files"]
        assert config.layout == run["layout"]
        assert config.collective == (run["collective"] == "1")
        assert config.transfer_size == int(run["request_size"])
        assert config.operation.replace("write+read", "readwrite") == run["operation"]
        moved = config.tasks * config.bytes_per_process * config.repetitions
        assert config.write * moved == int(run["bytes_written"])
        assert config.read * moved == int(run["bytes_read"])
        assert IorConfig.from_command_line(config.command_line(launcher=True)) == config


# Some of them in an old spelling, or a default.
CONDITIONS = [
    "-Z", "-Q 3", "-Q 1", "-E", "-u", "-M 75%", "-M 1024m", "-O memoryPerTask=1g", "-l random",
    "-l t", "-V", "--mpiio.useFileView", "-J 1m", "-U my hints", "--dfs.oclass=S 1",
    "--posix.lustre.stripecount=-1", "-O lustreStripeCount=4", "--posix.rangelocks",
    "IOR_HINT__MPI__cb_nodes=4", "IOR_HINT__MPI__romio_cb_write=enable",
    "IOR_HINT__MPI__cb_config_list=n1:2,*:1",
]  # fmt: skip
OTHERS = [("-v",), ("-G", "-5"), ("-G=7",), ("-R",), ("-W",), ("--dfs.pool=p",), ("-O", "refNum=3")]


@st.composite
def configs(draw: st.DrawFn) -> IorConfig:
    flag = st.booleans()
    transfer_size = 8 * draw(st.integers(1, 1 << 30))
    values: dict[str, Any] = {
        "api": draw(st.sampled_from(["POSIX", "mpiio", "HDF5", "NCMPI", "DFS"])),
        "random_offsets": draw(st.integers(0, 2)),
        "transfer_size": transfer_size,
        "block_size": transfer_size * draw(st.integers(1, 1 << 20)),
        "segments": draw(st.integers(1, 1 << 40)),
        "repetitions": draw(st.integers(1, 9)),
        "inter_test_delay": draw(st.integers(0, 9)),
        "test_file": draw(st.none() | st.text(st.characters(exclude_characters="\0"), min_size=1)),
        "summary_format": draw(st.sampled_from([None, "default", "JSON", "CSV"])),
        "tasks": draw(st.none() | st.integers(1, 1 << 20)),
        "nodes": draw(st.none() | st.integers(1, 9)),
        "fsync": draw(st.sampled_from(["none", "end", "each"])),
        "conditions": tuple(draw(st.lists(st.sampled_from(CONDITIONS)))),
        "other_options": sum(draw(st.lists(st.sampled_from(OTHERS))), start=()),
    }
    flags = [
        "write", "read", "file_per_process", "collective", "reorder_tasks",
        "intra_test_barriers", "keep_file", "multi_file", "odirect",
    ]  # fmt: skip
    values |= {name: draw(flag) for name in flags}
    try:
        return IorConfig(**values)
    except InputError:
        assume(False)
        raise


@given(configs())
def test_arguments_are_read_back(config: IorConfig) -> None:
    options = tuple(one for one in config.conditions if not one.startswith("IOR_HINT"))
    expected = replace(config, tasks=None, nodes=None, conditions=options)
    assert IorConfig.from_args(config.to_args()) == expected


@given(configs())
def test_command_lines_are_read_back(config: IorConfig) -> None:
    text = config.command_line(launcher=True)
    assert IorConfig.from_command_line(text) == replace(config, nodes=None)


@given(configs(), st.sampled_from(["write", "read"]))
def test_a_configuration_of_one_operation_has_no_other(config: IorConfig, operation: str) -> None:
    assert config.for_operation(operation).operation == operation
    assert config.pattern().pattern() == config.pattern()


@given(st.lists(st.text(max_size=9) | st.sampled_from(["-w", "-b", "-O", "16m", "a=1", "--x"])))
def test_any_arguments_are_a_configuration_or_a_clear_error(args: list[str]) -> None:
    try:
        config = IorConfig.from_args(args)
    except InputError:
        return
    assert IorConfig.from_args(config.to_args()).to_args() == config.to_args()
