# Functions of the hooks beside this file, which read it with `.`.
# shellcheck shell=sh

# TaskProlog runs in a user's environment. So the place of the settings and PATH are set here. slurmctld
# runs its hooks without any PATH.
HOOKS_CONF=${0%/*}/hooks.conf
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL

LICENCE=ionode
JOBS_FOLDER=
IO_NODES=
JOBS_PER_IO_NODE=1
PLACEMENT=
SITE_SCRIPT=
GEKKOFWD_DAEMONS=

# slurmctld discards the output of a failing hook, so the message goes to the system's log too.
complain() {
    echo "ioncast: $1" >&2
    logger -t ioncast -p daemon.err -- "$1" 2>/dev/null
}

fail() {
    complain "$1"
    exit 1
}

read_configuration() {
    [ -r "$HOOKS_CONF" ] || return 1
    # A syntax error in a file that is read with `.` would end this shell, so another shell checks it first.
    /bin/sh -n "$HOOKS_CONF" || return 1
    # shellcheck source-path=SCRIPTDIR source=hooks.conf
    . "$HOOKS_CONF"
    wrong_setting=
    JOBS_PER_IO_NODE=${JOBS_PER_IO_NODE:-1}
    if ! is_number "$JOBS_PER_IO_NODE" || [ "${#JOBS_PER_IO_NODE}" -gt 9 ] ||
        [ "$JOBS_PER_IO_NODE" -lt 1 ] || [ "$JOBS_PER_IO_NODE" -gt 64 ]; then
        wrong_setting="JOBS_PER_IO_NODE $JOBS_PER_IO_NODE is not a number from 1 to 64 ($HOOKS_CONF)"
        JOBS_PER_IO_NODE=1
    fi
    # The last line of hooks.conf may be a test that is false.
    return 0
}

# licence_count LICENCES NAME: print the count of a licence in Slurm's text, such as
# `matlab:2,ionode:4`, `ionode` (1) or `ionode@server:4`; 0 if the text does not name it. Slurm 25.05's
# alternatives, `matlab:1|ionode:4`, are counted as if the job asked for both. A count that is negative
# or above any pool, of which Slurm keeps the low 32 bits, is left alone: 0.
licence_count() {
    printf '%s' "$1" | tr '\n' ' ' | awk -v name="$2" '
        {
            parts = split($0, licence, /[,;|]/)
            for (i = 1; i <= parts; i++) {
                fields = split(licence[i], field, /[:=]/)
                gsub(/[ \t]/, "", field[1])
                local_name = field[1]
                sub(/@.*/, "", local_name)
                if (field[1] == name || local_name == name)
                    total += fields == 1 ? 1 : field[2]
            }
        }
        END { printf "%d\n", (total >= 0 && total <= 65536) ? total : 0 }'
}

# start_io_nodes JOB N NODES: give a job its I/O nodes; a second call changes nothing.
start_io_nodes() {
    umask 022
    # Only here, because all hooks read the settings, and TaskProlog does so for every process.
    [ -z "$wrong_setting" ] || complain "$wrong_setting"
    export ION_NODES=
    if [ -n "$GEKKOFWD_DAEMONS" ]; then
        give_daemons "$1" "$2" "$3"
        ION_NODES=$(names_of "$1")
    elif [ -n "$IO_NODES" ] && [ -n "$JOBS_FOLDER" ]; then
        # A job starts without names rather than late.
        if ! ION_NODES=$(timeout -k 1 10 /bin/sh "${0%/*}/name_io_nodes.sh" "$1" "$2"); then
            complain "job $1 starts without names of its I/O nodes"
            # Names of an earlier job with this id are wrong.
            ION_NODES=
            rm -f "$JOBS_FOLDER/$1.hosts" "$JOBS_FOLDER/.$1.hosts.new"
        fi
    fi
    if [ -n "$SITE_SCRIPT" ] && ! "$SITE_SCRIPT" start "$1" "$2" "$3"; then
        remove_files "$1"
        fail "job $1: $SITE_SCRIPT start $1 $2 $3 failed"
    fi
    if [ -n "$JOBS_FOLDER" ]; then
        put "$1.count" "$2" || fail "job $1: cannot write $JOBS_FOLDER/$1.count"
    fi
}

# end_io_nodes JOB N NODES: take a job's I/O nodes back; a second call changes nothing.
end_io_nodes() {
    ended=0
    if [ -n "$SITE_SCRIPT" ]; then
        ION_NODES=$(names_of "$1")
        export ION_NODES
        "$SITE_SCRIPT" end "$1" "$2" "$3" || ended=$?
    fi
    remove_files "$1"
    [ "$ended" -eq 0 ] || fail "job $1: $SITE_SCRIPT end $1 $2 $3 failed"
}

# end_left_behind JOB: take back the I/O nodes of an earlier job with this id. If slurmctld loses its state, it
# runs no epilog for running jobs and uses their ids again.
end_left_behind() {
    left_behind=$(started_count "$1") || return 0
    end_io_nodes "$1" "$left_behind" ""
}

# started_count JOB: print the number of I/O nodes that start_io_nodes gave the job; fail if it is unknown.
started_count() {
    [ -n "$JOBS_FOLDER" ] && [ -r "$JOBS_FOLDER/$1.count" ] &&
        read -r started <"$JOBS_FOLDER/$1.count" && is_number "$started" && echo "$started"
}

is_number() {
    case $1 in
        "" | *[!0-9]*) return 1 ;;
    esac
}

# put NAME TEXT: write a file in JOBS_FOLDER. Readers find the whole file or none.
put() {
    printf '%s\n' "$2" >"$JOBS_FOLDER/.$1.new" && mv -f "$JOBS_FOLDER/.$1.new" "$JOBS_FOLDER/$1"
}

# names_of JOB: print the names of a job's I/O nodes with commas between; nothing if it has no names.
names_of() {
    [ -n "$JOBS_FOLDER" ] && [ -r "$JOBS_FOLDER/$1.hosts" ] &&
        awk 'NF { names = names comma $1; comma = "," } END { print names }' "$JOBS_FOLDER/$1.hosts"
}

# note_names JOB: append the names of a job's I/O nodes to the history, where the watch finds them after the job's
# end. The caller has the lock. The line begins on a new line even if a killed hook left a part of one, and
# `end` shows that it is whole. Two files of 1 MiB hold the last thirty thousand jobs.
note_names() {
    size=$(stat -c %s "$JOBS_FOLDER/history" 2>/dev/null)
    [ "${size:-0}" -lt 1048576 ] || mv -f "$JOBS_FOLDER/history" "$JOBS_FOLDER/history.old"
    printf '\n%s %s %s end\n' "$1" "$(date +%s)" "$(names_of "$1")" >>"$JOBS_FOLDER/history" ||
        complain "job $1: cannot write $JOBS_FOLDER/history"
}

remove_files() {
    [ -n "$JOBS_FOLDER" ] || return 0
    rm -f "$JOBS_FOLDER/$1.count" "$JOBS_FOLDER/$1.map" "$JOBS_FOLDER/$1.hosts"
}

# choose JOB N: print the lines of the job's I/O nodes, fewer than N if too few are free. The files JOB.hosts
# are the only record of which I/O node serves which job, so the record is right even after a crash of
# slurmctld. The caller has the lock.
choose() {
    chosen=$(choose_free "$1" "$2")
    if [ "$(printf '%s\n' "$chosen" | grep -c .)" -lt "$2" ] && end_lost; then
        chosen=$(choose_free "$1" "$2")
    fi
    printf '%s\n' "$chosen"
}

choose_free() {
    jobs_each=$JOBS_PER_IO_NODE
    # As hooks.conf says, no other job has a job's daemons.
    [ -z "$GEKKOFWD_DAEMONS" ] || jobs_each=1
    {
        pool | sed 's/^/pool /'
        (cd "$JOBS_FOLDER" && grep -Has . ./*.hosts) | sed 's/^/taken /'
        arbiters_list | sed 's/^/list /'
    } | awk -v job="$1" -v number="$2" -v jobs_each="$jobs_each" -v now_s="$(date +%s)" \
        -f "${0%/*}/choose_io_nodes.awk"
}

# pool: print a line for each I/O node of the site.
pool() {
    if [ -n "$GEKKOFWD_DAEMONS" ]; then
        awk 'NF == 2' "$GEKKOFWD_DAEMONS"
    else
        # shellcheck disable=SC2086 # the names are words
        printf '%s\n' $IO_NODES
    fi
}

# arbiters_list: print the arbiter's list. The arbiter may write into the file, but only its owner could put
# a pipe in its place.
arbiters_list() {
    [ -n "$PLACEMENT" ] && [ -f "$PLACEMENT" ] || return 0
    [ -O "$PLACEMENT" ] || [ "$(stat -L -c %u "$PLACEMENT")" = 0 ] || return 0
    head -c 65536 "$PLACEMENT" | tr -cd '[:print:]\n'
}

# end_lost: take back the I/O nodes of jobs that Slurm does not know as running: their epilog was lost or killed.
end_lost() {
    running=$(timeout -k 1 3 squeue --noheader --format="%A %T" 2>/dev/null) || return 1
    running=" $(printf '%s\n' "$running" | awk '$2 != "PENDING" { printf "%s ", $1 }')"
    for file in "$JOBS_FOLDER"/*.hosts; do
        job=${file##*/}
        job=${job%.hosts}
        case $running in
            *" $job "*) ;;
            *) rm -f "$JOBS_FOLDER/$job.hosts" "$JOBS_FOLDER/$job.map" ;;
        esac
    done
}

# give_daemons JOB N NODES: give a job N of GekkoFWD's daemons.
#
# GekkoFWD's client (jeanbez/gekko-fwd, src/client/preload_util.cpp; "Forwarding mode" in GekkoFS's
# documentation) reads two files: LIBGKFS_HOSTS_FILE has lines `HOST URI`, and any other line is an
# error; LIBGKFS_FORWARDING_MAP_FILE has a line `NODE INDEX` for each compute node by its short name.
# INDEX is the number of a line in the hosts file, counted from 0. The client reads the map again and
# again while the job runs, and ends the job if the map is missing.
give_daemons() {
    [ -d "$JOBS_FOLDER" ] || fail "JOBS_FOLDER $JOBS_FOLDER is not a folder ($HOOKS_CONF)"
    [ -r "$GEKKOFWD_DAEMONS" ] || fail "cannot read GEKKOFWD_DAEMONS $GEKKOFWD_DAEMONS"
    (
        flock -w 30 9 || fail "job $1: $JOBS_FOLDER/lock was busy for 30 s"
        hosts=$(choose "$1" "$2")
        count=$(printf '%s\n' "$hosts" | grep -c .)
        [ "$count" -ge "$2" ] ||
            fail "job $1: $2 I/O nodes, but $count daemons of $GEKKOFWD_DAEMONS are free (see $JOBS_FOLDER)"
        map=$(forwarding_map "$2" "$3") || exit 1
        if ! put "$1.hosts" "$hosts" || ! put "$1.map" "$map"; then
            remove_files "$1"
            fail "job $1: cannot write to $JOBS_FOLDER"
        fi
        note_names "$1"
    ) 9>"$JOBS_FOLDER/lock" || exit 1
}

# forwarding_map N NODES: print the map. Neighbouring nodes share a daemon, as in GekkoFS's own example.
forwarding_map() {
    # scontrol exits with 0 even if it cannot read the list of nodes.
    nodes=$(scontrol show hostnames "$2")
    [ -n "$nodes" ] || fail "scontrol finds no nodes in '$2'; is SLURM_CONF right?"
    printf '%s\n' "$nodes" | awk -v daemons="$1" '
        { sub(/\..*/, ""); node[NR] = $0 }
        END { for (i = 1; i <= NR; i++) print node[i], int((i - 1) * daemons / NR) }'
}
