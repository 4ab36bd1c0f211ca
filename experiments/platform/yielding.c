/*
 * Makes an MPI rank that waits for a message give its core to others.
 *
 * MPI libraries on UCX, such as Debian's MPICH, ask for messages in a busy loop, but here many ranks
 * and daemons share few cores. `ioncast platform up` compiles this file if there is a C compiler, and
 * `ioncast platform exec --mpi` preloads it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*progress_function)(void *worker);

static void *ucx(void)
{
    /* Python loads MPI with RTLD_LOCAL, where RTLD_NEXT does not find it. */
    void *loaded = dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD);

    return loaded ? loaded : RTLD_NEXT;
}

unsigned ucp_worker_progress(void *worker)
{
    static progress_function progress;
    unsigned events;

    if (!progress)
        progress = (progress_function)dlsym(ucx(), "ucp_worker_progress");
    events = progress(worker);
    if (!events)
        sched_yield();
    return events;
}
