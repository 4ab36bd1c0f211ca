# Choose the I/O nodes of a job: a pure function of its input and of the variables job, number, jobs_each and now_s.
# The input has lines of three kinds, in any order; URI is only there with GekkoFWD:
#     pool NAME [URI]              an I/O node of the site
#     taken ./JOB.hosts:NAME [URI] an I/O node that a job has
#     list TEXT                    a line of the arbiter's list, which may contain anything. There the line
#                                  `last NAME...` has slow I/O nodes, which are chosen only if too few others are free
# The output has a line `NAME [URI]` for each I/O node: `number` of them, or fewer if too few are free.
# I/O nodes are told apart by their URI, or by their name if they have no URI.

BEGIN {
    LONGEST_S = 30
    # awk compares a text with a number as texts.
    jobs_each += 0
}

$1 == "pool" && NF > 1 {
    id = NF > 2 ? $3 : $2
    if (!(id in line_of)) {
        line_of[id] = NF > 2 ? $2 " " $3 : $2
        pool[++in_all] = id
        of_name[$2, ++ids_of[$2]] = id
        name_of[id] = $2
    }
}

$1 == "taken" {
    colon = index($2, ".hosts:")
    name = substr($2, colon + 7)
    id = NF > 2 ? $3 : name
    if (substr($2, 3, colon - 3) == job) {
        own[++in_own] = id
        own_line[in_own] = NF > 2 ? name " " $3 : name
    } else if (++taken[id] > most_taken)
        most_taken = taken[id]
}

# The same time in the first and the last line shows that nobody is writing the file.
$1 == "list" {
    if (++in_list == 1)
        written_s = $2 == "ioncast-placement" && $3 ~ /^[0-9]+$/ ? $3 : -1
    is_whole = $2 == "end" && $3 == written_s
    if ($2 == "last")
        for (word = 3; word <= NF; word++) slow[$word]
    if ($2 == job)
        for (in_wanted = 0; in_wanted < NF - 2; in_wanted++)
            wanted[in_wanted] = $(in_wanted + 3)
}

END {
    if (has_its_own()) {
        for (place = 1; place <= in_own; place++) print own_line[place]
        exit
    }
    is_new = is_whole && written_s - now_s < LONGEST_S && now_s - written_s < LONGEST_S
    for (word = 0; is_new && word < in_wanted; word++)
        for (load = 0; is_load(load); load++) take_name(wanted[word], load)
    for (part = 0; part <= 1; part++)
        for (load = 0; is_load(load); load++)
            for (place = 1; place <= in_all; place++)
                if (is_last(pool[place]) == part) take(pool[place], load)
}

function is_last(id) {
    return is_new && (name_of[id] in slow)
}

# A hook that is called twice changes nothing.
function has_its_own() {
    for (place = 1; place <= in_own; place++)
        if (!(own[place] in line_of) || taken[own[place]] + 0 >= jobs_each) return 0
    return in_own == number
}

# Whether an I/O node with so many jobs may be needed.
function is_load(load) {
    return in_choice < number && load < jobs_each && load <= most_taken
}

function take_name(name, load,    place) {
    for (place = 1; place <= ids_of[name] + 0; place++) take(of_name[name, place], load)
}

function take(id, load) {
    if (in_choice >= number || id in chosen || taken[id] + 0 != load) return
    chosen[id]
    in_choice++
    print line_of[id]
}
