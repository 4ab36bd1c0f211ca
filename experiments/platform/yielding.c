/*
 * Lets a rank that waits give its core away, for MPI libraries on UCX such as Debian's MPICH: they
 * ask for messages in a loop without end, and many ranks share few cores with the daemons here.
 * `ioncast platform up` compiles it where there is a compiler; `exec --mpi` preloads it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>

typedef unsigned (*progress_function)(void *worker);

static void *ucx(void)
{
    /* Python loads MPI out of the sight of other libraries. */
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
