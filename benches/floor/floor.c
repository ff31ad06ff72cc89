/* The physical floor of a load client: prepared point selects over a Unix socket with nothing around them.
 *
 *     floor SOCKET USER DATABASE USERS SECONDS ROWS epoll|uring
 *
 * One thread, one epoll instance (level-triggered), one send of a precomputed COM_STMT_EXECUTE and one receive per
 * query. `uring` submits each ready batch's sends and receives with one system call instead. Prints one JSON object:
 * queries, wall_s, cpu_s (user + system of the measured loop).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 4, ANSWER = 16384, EVENTS = 256, RING = 1024, ID_AT = 18, EXECUTE = 22 };
enum { OK = 0x00, END = 0xfe, ERROR = 0xff, COM_STMT_PREPARE = 0x16, COM_STMT_EXECUTE = 0x17 };

static const char QUERY[] = "SELECT c FROM sbtest1 WHERE id=?";

struct connection {
    int socket;
    unsigned char execute[EXECUTE]; /* the whole packet; only the row's id changes */
    unsigned char answer[ANSWER];
};

static uint64_t random_state = 0x9e3779b97f4a7c15u;

static uint32_t draw(uint32_t rows) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 32) % rows + 1;
}

static void die(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
    exit(1);
}

static double now_s(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void put32(unsigned char *at, uint32_t value) {
    for (int i = 0; i < 4; i++) at[i] = (unsigned char)(value >> (8 * i));
}

/* Fills a packet's header; its payload stands behind it. */
static void frame(unsigned char *packet, uint32_t length, unsigned char sequence) {
    put32(packet, length);
    packet[3] = sequence;
}

static void send_all(int socket, const unsigned char *bytes, size_t length) {
    if (send(socket, bytes, length, MSG_NOSIGNAL) != (ssize_t)length) die("send");
}

/* One packet into `payload`, its length returned. Only before the measured loop. */
static uint32_t receive(int socket, unsigned char *payload) {
    unsigned char header[HEADER];
    if (recv(socket, header, HEADER, MSG_WAITALL) != HEADER) die("receive");
    uint32_t length = header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16;
    if (length > ANSWER) { errno = EMSGSIZE; die("a packet before the loop"); }
    if (length && recv(socket, payload, length, MSG_WAITALL) != (ssize_t)length) die("receive");
    return length;
}

static void log_in(struct connection *one, const char *user, const char *database) {
    enum { PROTOCOL_41 = 0x200, SECURE = 0x8000, PLUGIN = 0x80000, WITH_DATABASE = 0x8, TRANSACTIONS = 0x2000 };
    unsigned char packet[512] = {0};
    receive(one->socket, one->answer);
    unsigned char *at = packet + HEADER;
    put32(at, PROTOCOL_41 | SECURE | PLUGIN | WITH_DATABASE | TRANSACTIONS);
    put32(at + 4, 1 << 24);
    at[8] = 45; /* utf8mb4 */
    at += 32;
    at = (unsigned char *)stpcpy((char *)at, user) + 1;
    *at++ = 0; /* an empty password has an empty proof */
    at = (unsigned char *)stpcpy((char *)at, database) + 1;
    at = (unsigned char *)stpcpy((char *)at, "mysql_native_password") + 1;
    frame(packet, (uint32_t)(at - packet - HEADER), 1);
    send_all(one->socket, packet, (size_t)(at - packet));
    receive(one->socket, one->answer);
    if (one->answer[0] != OK) { errno = EACCES; die("log in"); }
}

static void prepare(struct connection *one) {
    unsigned char packet[HEADER + 1 + sizeof QUERY];
    frame(packet, sizeof QUERY, 0);
    packet[HEADER] = COM_STMT_PREPARE;
    memcpy(packet + HEADER + 1, QUERY, sizeof QUERY - 1);
    send_all(one->socket, packet, HEADER + sizeof QUERY);
    receive(one->socket, one->answer);
    if (one->answer[0] != OK) { errno = EPROTO; die("prepare"); }
    unsigned char statement[4];
    memcpy(statement, one->answer + 1, 4);
    for (int i = 0; i < 4; i++) receive(one->socket, one->answer); /* parameter, end, column, end */
    unsigned char *execute = one->execute;
    memset(execute, 0, EXECUTE);
    frame(execute, EXECUTE - HEADER, 0);
    execute[4] = COM_STMT_EXECUTE;
    memcpy(execute + 5, statement, 4);
    put32(execute + 10, 1); /* iterations */
    execute[15] = 1;        /* types follow: a 32-bit integer */
    execute[16] = 3;
}

static void open_connection(struct connection *one, char *const *arguments) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(arguments[1]) >= sizeof address.sun_path) { errno = ENAMETOOLONG; die(arguments[1]); }
    strcpy(address.sun_path, arguments[1]);
    one->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one->socket < 0 || connect(one->socket, (struct sockaddr *)&address, sizeof address)) die("connect");
    log_in(one, arguments[2], arguments[3]);
    prepare(one);
}

/* A whole answer holds the row's 119 characters and ends with an end packet of five bytes; less of it in one receive
 * would be no floor but a fault. */
static void check(const struct connection *one, ssize_t length) {
    if (length < 119) { errno = EPROTO; die("answer"); }
    if (one->answer[HEADER] == ERROR || one->answer[length - 5] != END) { errno = EPROTO; die("answer"); }
}

static void send_next(struct connection *one, uint32_t rows) {
    put32(one->execute + ID_AT, draw(rows));
    send_all(one->socket, one->execute, EXECUTE);
}

static uint64_t run_epoll(struct connection *all, int users, double seconds, uint32_t rows) {
    int poll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < users; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, all[i].socket, &event)) die("epoll");
        send_next(&all[i], rows);
    }
    uint64_t done = 0;
    for (double end = now_s() + seconds; now_s() < end;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            struct connection *one = events[i].data.ptr;
            check(one, recv(one->socket, one->answer, ANSWER, 0));
            send_next(one, rows);
            done++;
        }
    }
    return done;
}

struct ring {
    int descriptor;
    uint32_t *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
    unsigned queued;
};

static void *map(int descriptor, size_t length, uint64_t offset) {
    void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, (off_t)offset);
    if (at == MAP_FAILED) die("map the ring");
    return at;
}

static struct ring open_ring(void) {
    struct io_uring_params parameters = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    struct ring ring = {.descriptor = (int)syscall(SYS_io_uring_setup, RING, &parameters)};
    if (ring.descriptor < 0) die("io_uring");
    char *sq = map(ring.descriptor, parameters.sq_off.array + parameters.sq_entries * 4, IORING_OFF_SQ_RING);
    char *cq = map(ring.descriptor, parameters.cq_off.cqes + parameters.cq_entries * sizeof *ring.completions,
                   IORING_OFF_CQ_RING);
    ring.entries = map(ring.descriptor, parameters.sq_entries * sizeof *ring.entries, IORING_OFF_SQES);
    ring.sq_tail = (uint32_t *)(sq + parameters.sq_off.tail);
    ring.sq_mask = (uint32_t *)(sq + parameters.sq_off.ring_mask);
    ring.sq_array = (uint32_t *)(sq + parameters.sq_off.array);
    ring.cq_head = (uint32_t *)(cq + parameters.cq_off.head);
    ring.cq_tail = (uint32_t *)(cq + parameters.cq_off.tail);
    ring.cq_mask = (uint32_t *)(cq + parameters.cq_off.ring_mask);
    ring.completions = (struct io_uring_cqe *)(cq + parameters.cq_off.cqes);
    return ring;
}

static void enqueue(struct ring *ring, struct io_uring_sqe entry) {
    uint32_t tail = *ring->sq_tail, slot = tail & *ring->sq_mask;
    ring->entries[slot] = entry;
    ring->sq_array[slot] = slot;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    ring->queued++;
}

static void enqueue_next(struct ring *ring, struct connection *one, uint32_t rows) {
    put32(one->execute + ID_AT, draw(rows));
    enqueue(ring, (struct io_uring_sqe){.opcode = IORING_OP_SEND, .fd = one->socket, .addr = (uintptr_t)one->execute,
                                        .len = EXECUTE, .flags = IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS});
    /* The answer cannot be there yet: poll first saves a receive that fails. */
    enqueue(ring, (struct io_uring_sqe){.opcode = IORING_OP_RECV, .fd = one->socket, .addr = (uintptr_t)one->answer,
                                        .len = ANSWER, .ioprio = IORING_RECVSEND_POLL_FIRST,
                                        .user_data = (uintptr_t)one});
}

static uint64_t run_ring(struct connection *all, int users, double seconds, uint32_t rows) {
    struct ring ring = open_ring();
    for (int i = 0; i < users; i++) enqueue_next(&ring, &all[i], rows);
    uint64_t done = 0;
    for (double end = now_s() + seconds; now_s() < end;) {
        if (syscall(SYS_io_uring_enter, ring.descriptor, ring.queued, 1, IORING_ENTER_GETEVENTS, NULL, 0) !=
            (long)ring.queued)
            die("submit");
        ring.queued = 0;
        uint32_t head = *ring.cq_head, tail = __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE);
        for (; head != tail; head++) {
            struct io_uring_cqe *completion = &ring.completions[head & *ring.cq_mask];
            struct connection *one = (struct connection *)(uintptr_t)completion->user_data;
            if (!one || completion->res < 0) { errno = -completion->res; die("completion"); }
            check(one, completion->res);
            enqueue_next(&ring, one, rows);
            done++;
        }
        __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    }
    return done;
}

int main(int count, char **arguments) {
    if (count != 8) {
        fprintf(stderr, "usage: floor SOCKET USER DATABASE USERS SECONDS ROWS epoll|uring\n");
        return 2;
    }
    int users = atoi(arguments[4]);
    double seconds = atof(arguments[5]);
    uint32_t rows = (uint32_t)strtoul(arguments[6], NULL, 10);
    if (users < 1 || users > RING / 2 || seconds <= 0 || rows < 1) {
        fprintf(stderr, "floor: 1 to %d users, some seconds and rows\n", RING / 2);
        return 2;
    }
    struct connection *all = calloc((size_t)users, sizeof *all);
    if (!all) die("memory");
    for (int i = 0; i < users; i++) open_connection(&all[i], arguments);
    double wall = now_s(), cpu = cpu_s();
    uint64_t done = strcmp(arguments[7], "uring") ? run_epoll(all, users, seconds, rows)
                                                   : run_ring(all, users, seconds, rows);
    printf("{\"units\": %llu, \"wall_s\": %.6f, \"cpu_s\": %.6f}\n", (unsigned long long)done, now_s() - wall,
           cpu_s() - cpu);
    return 0;
}
