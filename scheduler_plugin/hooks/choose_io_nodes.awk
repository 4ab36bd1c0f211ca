# Choose the I/O nodes of a job: a pure function of its input and of the variables job, number, jobs_each and now_s.
# The input has lines of three kinds, in any order; URI is only there with GekkoFWD:
#     pool NAME [URI]              an I/O node of the site
#     taken ./JOB.hosts:NAME [URI] an I/O node that a job has
#     list TEXT                    a line of the arbiter's list, which may contain anything
# The output has a line `NAME [URI]` for each I/O node: `number` of them, or fewer if too few are free.

BEGIN {
    LONGEST_S = 30
    # awk compares a text with a number as texts.
    jobs_each += 0
}

$1 == "pool" && NF > 1 {
    line = NF > 2 ? $2 " " $3 : $2
    if (!(line in in_pool)) {
        in_pool[line]
        pool[++in_all] = line
        of_name[$2, ++lines_of[$2]] = line
    }
}

$1 == "taken" {
    colon = index($2, ".hosts:")
    line = substr($2, colon + 7) (NF > 2 ? " " $3 : "")
    if (substr($2, 3, colon - 3) == job)
        own[++in_own] = line
    else if (++taken[line] > most_taken)
        most_taken = taken[line]
}

# The same time in the first and the last line shows that nobody is writing the file.
$1 == "list" {
    words = NF
    if (++in_list == 1)
        written_s = $2 == "ioncast-placement" && $3 ~ /^[0-9]+$/ ? $3 : -1
    is_whole = $2 == "end" && $3 == written_s
    if ($2 == "*" || $2 == job)
        for (word = 3; word <= NF; word++)
            wanted[$2 == job, word - 2] = $word
    if ($2 == "*") in_order = NF - 2
    if ($2 == job) for_job = NF - 2
}

END {
    if (has_its_own()) {
        for (place = 1; place <= in_own; place++) print own[place]
        exit
    }
    is_new = is_whole && written_s - now_s < LONGEST_S && now_s - written_s < LONGEST_S
    for (word = 1; is_new && word <= for_job; word++)
        for (load = 0; is_load(load); load++) take_name(wanted[1, word], load)
    for (load = 0; is_load(load); load++) {
        for (word = 1; is_new && word <= in_order; word++) take_name(wanted[0, word], load)
        for (place = 1; place <= in_all; place++) take(pool[place], load)
    }
}

# A hook that is called twice changes nothing.
function has_its_own() {
    for (place = 1; place <= in_own; place++)
        if (!(own[place] in in_pool) || taken[own[place]] + 0 >= jobs_each) return 0
    return in_own == number
}

# Whether an I/O node with so many jobs may be needed.
function is_load(load) {
    return in_choice < number && load < jobs_each && load <= most_taken
}

function take_name(name, load,    place) {
    for (place = 1; place <= lines_of[name] + 0; place++) take(of_name[name, place], load)
}

function take(line, load) {
    if (in_choice >= number || line in chosen || taken[line] + 0 != load) return
    chosen[line]
    in_choice++
    print line
}
