/* A program whose I/O has one planted fault, or none.

   mpiexec -n 8 planted FAULT make|bad|good FOLDER

   `make` writes the files that are read. `bad` and `good` serve the same purpose, and only `bad` has
   the fault. Requests are of 1 MiB and go to the device (O_DIRECT), if nothing else is said. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static int rank, processes, bad;
static char *folder, *buffer, path[4096];

static const char *file_of(const char *name, int number) {
    snprintf(path, sizeof path, "%s/%s.%d", folder, name, number);
    return path;
}

static void failed(const char *what) {
    perror(what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

static int opened(const char *name, int flags) {
    int found = open(name, flags, 0644);
    if (found < 0) failed(name);
    return found;
}

static void put(int file, size_t bytes, off_t at) {
    if (pwrite(file, buffer, bytes, at) != (ssize_t)bytes) failed("write");
}

static void get(int file, size_t bytes, off_t at) {
    if (pread(file, buffer, bytes, at) != (ssize_t)bytes) failed("read");
}

static void write_all(const char *name, off_t bytes, size_t request, int flags) {
    int file = opened(name, O_WRONLY | O_CREAT | flags);
    for (off_t at = 0; at < bytes; at += request) put(file, request, at);
    close(file);
}

static void read_all(const char *name, off_t from, off_t bytes, size_t request, int flags) {
    int file = opened(name, O_RDONLY | flags);
    for (off_t at = from; at < from + bytes; at += request) get(file, request, at);
    close(file);
}

static void small_writes(void) {
    write_all(file_of("w", rank), 256 * MIB, bad ? 4 * KIB : MIB, O_DIRECT);
}

static void small_reads(void) {
    read_all(file_of("r", rank), 0, 256 * MIB, bad ? 4 * KIB : MIB, O_DIRECT);
}

static void small_records(void) {
    /* The same shared file, record by record, or 1 MiB at once. */
    int file = opened(file_of("s", 0), O_WRONLY | O_CREAT | O_DIRECT);
    size_t request = bad ? 4 * KIB : MIB;
    for (off_t at = 0; at < 128 * MIB; at += request)
        put(file, request, (off_t)rank * 128 * MIB + at);
    close(file);
}

static void reopened(void) {
    int file = -1;
    for (int i = 0; i < 256; i++) {
        if (file < 0) file = opened(file_of("o", rank), O_WRONLY | O_CREAT | O_DIRECT);
        put(file, MIB, (off_t)i * MIB);
        for (int j = 0; bad && j < 2000; j++) {
            close(file);
            file = opened(file_of("o", rank), O_WRONLY | O_CREAT | O_DIRECT);
        }
    }
    close(file);
}

static void slow_process(void) {
    /* Equal bytes: one process waits for the device, the others for the page cache only. */
    write_all(file_of("p", rank), 512 * MIB, MIB, bad && rank == 5 ? O_SYNC : 0);
}

static void all_read_all(void) {
    if (bad) {
        for (int times = 0; times < 2; times++)
            read_all(file_of("all", 0), 0, 512 * MIB, MIB, O_DIRECT);
    } else {
        read_all(file_of("all", 0), (off_t)rank * 64 * MIB, 64 * MIB, MIB, O_DIRECT);
    }
}

static void rewritten(void) {
    for (int times = 0; times < (bad ? 16 : 1); times++)
        write_all(file_of("again", rank), 64 * MIB, MIB, O_DIRECT);
}

static void made(const char *name, int count, off_t bytes) {
    for (int i = rank; i < count; i += processes) write_all(file_of(name, i), bytes, MIB, O_DIRECT);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &processes);
    if (argc != 4) failed("usage: planted FAULT make|bad|good FOLDER");
    bad = !strcmp(argv[2], "bad");
    folder = argv[3];
    if (posix_memalign((void **)&buffer, 4096, 64 * MIB)) MPI_Abort(MPI_COMM_WORLD, 1);
    memset(buffer, rank, 64 * MIB);
    const struct { const char *name; void (*run)(void); } faults[] = {
        {"small-writes", small_writes}, {"small-reads", small_reads},
        {"small-records", small_records}, {"reopened", reopened}, {"slow-process", slow_process},
        {"all-read-all", all_read_all}, {"rewritten", rewritten},
    };
    if (!strcmp(argv[2], "make")) { made("r", processes, 256 * MIB); made("all", 1, 512 * MIB); }
    else
        for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
            if (!strcmp(argv[1], faults[i].name)) faults[i].run();
    MPI_Finalize();
    return 0;
}
