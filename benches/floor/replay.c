/* The physical floor of any client of MySQL's protocol: it says again what record.c has recorded, and does nothing else.
 *
 *     replay SOCKET SECONDS DIRECTORY
 *
 * One thread, one epoll instance; per recorded packet one send and one receive (more only where the answer comes in
 * pieces). Answers are parsed just as far as finding their end takes; nothing is drawn, bound, decoded or counted by
 * kind. The client recorded must have agreed to CLIENT_DEPRECATE_EOF. It ends after SECONDS, or before, with the first
 * recording that ends; those with less than half the bytes of the longest (a client's look around before it begins) may
 * end. Prints one JSON object: units (packets answered), errors (of them, by an error), wall_s, cpu_s.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { HEADER = 4, PIECE = 65536, EVENTS = 256, MOST = 1024 };
enum { OK = 0x00, END = 0xfe, ERROR = 0xff, COM_STMT_PREPARE = 0x16, COM_STMT_CLOSE = 0x19, COM_QUIT = 0x01 };

/* How much of an answer is still to come. */
enum state { GREETING, LOG_IN, FIRST, DEFINITIONS, ROWS };

struct connection {
    int socket;
    unsigned char *said, *next, *end; /* the recording */
    enum state state;
    bool is_preparing, is_short;
    uint32_t definitions; /* packets still to come in DEFINITIONS */
    uint32_t held;        /* bytes of `answer` not yet parsed */
    unsigned char answer[PIECE];
};

static uint64_t units, errors;

static void die(const char *what) {
    fprintf(stderr, "replay: %s: %s\n", what, strerror(errno));
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

static uint32_t length_at(const unsigned char *header) {
    return header[0] | (uint32_t)header[1] << 8 | (uint32_t)header[2] << 16;
}

static void load_recording(struct connection *one, const char *name) {
    struct stat status;
    FILE *file = fopen(name, "rb");
    if (!file || fstat(fileno(file), &status)) die(name);
    one->said = one->next = malloc((size_t)status.st_size + 1);
    if (!one->said || fread(one->said, 1, (size_t)status.st_size, file) != (size_t)status.st_size) die(name);
    one->end = one->said + status.st_size;
    fclose(file);
}

static void dial(struct connection *one, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) { errno = ENAMETOOLONG; die(path); }
    strcpy(address.sun_path, path);
    one->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one->socket < 0 || connect(one->socket, (struct sockaddr *)&address, sizeof address)) die("connect");
}

/* Says the next packet, and those before it that have no answer; false at the recording's end (a cut last packet too). */
static bool say_next(struct connection *one) {
    unsigned char *from = one->next;
    for (bool is_answered = false; !is_answered;) {
        if (one->end - one->next < HEADER) return false;
        uint32_t length = length_at(one->next);
        if ((size_t)(one->end - one->next) < HEADER + (size_t)length) return false;
        unsigned char command = one->state == LOG_IN ? OK : one->next[HEADER];
        if (command == COM_QUIT && one->state == FIRST) return false;
        is_answered = command != COM_STMT_CLOSE;
        one->is_preparing = command == COM_STMT_PREPARE;
        one->next += HEADER + length;
    }
    if (send(one->socket, from, (size_t)(one->next - from), MSG_NOSIGNAL) != one->next - from) die("send");
    return true;
}

/* Takes one packet of an answer; true if it is the last. */
static bool is_last(struct connection *one, const unsigned char *content, uint32_t length) {
    switch (one->state) {
    case GREETING: one->state = LOG_IN; return true;
    case LOG_IN:
        if (content[0] != OK) { errno = EACCES; die("log in"); }
        one->state = FIRST;
        return true;
    case FIRST:
        errors += content[0] == ERROR;
        if (content[0] == ERROR) return true;
        if (content[0] == OK && !one->is_preparing) return true;
        one->definitions = content[0];
        if (one->is_preparing) /* columns and parameters */
            one->definitions = (content[5] | (uint32_t)content[6] << 8) + (content[7] | (uint32_t)content[8] << 8);
        if (one->definitions == 0) return true;
        one->state = DEFINITIONS;
        return false;
    case DEFINITIONS:
        if (--one->definitions) return false;
        one->state = one->is_preparing ? FIRST : ROWS;
        return one->is_preparing;
    case ROWS:
        errors += content[0] == ERROR;
        if (!(content[0] == ERROR || (content[0] == END && length < 0xffffff))) return false;
        one->state = FIRST;
        return true;
    }
    return false;
}

/* Receives once; true if the whole answer has come. */
static bool receive(struct connection *one) {
    ssize_t length = recv(one->socket, one->answer + one->held, PIECE - one->held, 0);
    if (length <= 0) die("receive");
    unsigned char *at = one->answer, *end = one->answer + one->held + length;
    bool is_whole = false;
    while (!is_whole && end - at >= HEADER && end - at >= HEADER + (ptrdiff_t)length_at(at)) {
        is_whole = is_last(one, at + HEADER, length_at(at));
        at += HEADER + length_at(at);
    }
    one->held = (uint32_t)(end - at);
    if (is_whole ? one->held > 0 : one->held == PIECE) { errno = EPROTO; die("answer"); }
    memmove(one->answer, at, one->held);
    return is_whole;
}

static void run(struct connection *all, int users, double seconds) {
    int poll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < users; i++) { /* the server greets first */
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, all[i].socket, &event)) die("epoll");
    }
    for (double end = now_s() + seconds; now_s() < end;) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(poll, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            struct connection *one = events[i].data.ptr;
            if (!receive(one)) continue;
            units++;
            if (say_next(one)) continue;
            if (!one->is_short) return;
            close(one->socket); /* and epoll forgets it */
        }
    }
}

int main(int count, char **arguments) {
    double seconds = count == 4 ? atof(arguments[2]) : 0;
    if (seconds <= 0) {
        fprintf(stderr, "usage: replay SOCKET SECONDS DIRECTORY\n");
        return 2;
    }
    struct connection *all = calloc(MOST, sizeof *all);
    if (!all) die("memory");
    int users = 0;
    for (char name[4096]; users < MOST; users++) {
        snprintf(name, sizeof name, "%s/%d", arguments[3], users);
        if (access(name, R_OK)) break;
        load_recording(&all[users], name);
        dial(&all[users], arguments[1]);
    }
    if (!users) { errno = ENOENT; die(arguments[3]); }
    ptrdiff_t longest = 0;
    for (int i = 0; i < users; i++)
        if (all[i].end - all[i].said > longest) longest = all[i].end - all[i].said;
    for (int i = 0; i < users; i++) all[i].is_short = all[i].end - all[i].said < longest / 2;
    double wall = now_s(), cpu = cpu_s();
    run(all, users, seconds);
    printf("{\"units\": %llu, \"errors\": %llu, \"wall_s\": %.6f, \"cpu_s\": %.6f}\n", (unsigned long long)units,
           (unsigned long long)errors, now_s() - wall, cpu_s() - cpu);
    return 0;
}
