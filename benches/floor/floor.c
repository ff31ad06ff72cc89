/*
 * The floor under a load generator: prepared point selects from one thread, with one epoll instance, one send and one
 * receive per query, and packets that were written before the clock starts. Nothing is decoded but the length of the
 * answer. No client that waits for its answers through epoll can do with less.
 *
 * floor SOCKET USER DATABASE CONNECTIONS SECONDS TABLE_SIZE
 * Prints {"queries": n, "wall_s": s, "cpu_s": s}.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 65536, EVENTS = 256, EXECUTE_LENGTH = 24 };
enum { PROTOCOL_41 = 0x200, SECURE = 0x8000, WITH_DB = 8, DEPRECATE_EOF = 0x1000000 };

static const char QUERY[] = "SELECT c FROM sbtest1 WHERE id=?";

struct connection {
    int fd;
    unsigned char execute[4 + EXECUTE_LENGTH];
    unsigned char incoming[BUFFER];
    size_t length;
};

static void fail(const char *what) {
    fprintf(stderr, "floor: %s: %s\n", what, errno ? strerror(errno) : "unexpected answer");
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t limit) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % limit) + 1;
}

static void write_packet(int fd, unsigned char sequence, const void *content, size_t length) {
    unsigned char packet[4 + 512];
    packet[0] = (unsigned char)length;
    packet[1] = (unsigned char)(length >> 8);
    packet[2] = 0;
    packet[3] = sequence;
    memcpy(packet + 4, content, length);
    if (send(fd, packet, length + 4, 0) != (ssize_t)(length + 4)) fail("send");
}

/* Reads one packet, blocking; returns its length. */
static size_t read_packet(int fd, unsigned char *content) {
    unsigned char header[4];
    if (recv(fd, header, 4, MSG_WAITALL) != 4) fail("receive");
    size_t length = header[0] | (size_t)header[1] << 8 | (size_t)header[2] << 16;
    if (length > BUFFER || recv(fd, content, length, MSG_WAITALL) != (ssize_t)length) fail("receive");
    if (length && content[0] == 0xff) {
        fprintf(stderr, "floor: the server says: %.*s\n", (int)length - 3, content + 3);
        exit(1);
    }
    return length;
}

static void log_in(struct connection *connection, const char *path, const char *user, const char *database) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strncpy(address.sun_path, path, sizeof address.sun_path - 1);
    connection->fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection->fd, (struct sockaddr *)&address, sizeof address)) fail("connect");
    unsigned char *content = connection->incoming;
    read_packet(connection->fd, content);
    unsigned char answer[512] = {0};
    uint32_t flags = PROTOCOL_41 | SECURE | WITH_DB | DEPRECATE_EOF;
    memcpy(answer, &flags, 4);
    answer[7] = 1; /* packets of up to 16 MiB */
    answer[8] = 45;
    size_t length = 32;
    length += (size_t)sprintf((char *)answer + length, "%s", user) + 1;
    answer[length++] = 0; /* no password */
    length += (size_t)sprintf((char *)answer + length, "%s", database) + 1;
    write_packet(connection->fd, 1, answer, length);
    read_packet(connection->fd, content);
    if (content[0] == 0xfe) { /* another plugin: no password there either */
        write_packet(connection->fd, 3, "", 0);
        read_packet(connection->fd, content);
    }
}

static void prepare(struct connection *connection) {
    unsigned char command[64] = {0x16};
    memcpy(command + 1, QUERY, sizeof QUERY - 1);
    write_packet(connection->fd, 0, command, sizeof QUERY);
    unsigned char *content = connection->incoming;
    read_packet(connection->fd, content);
    uint32_t statement;
    memcpy(&statement, content + 1, 4);
    read_packet(connection->fd, content); /* its parameter */
    read_packet(connection->fd, content); /* its column */
    unsigned char *execute = connection->execute;
    memset(execute, 0, sizeof connection->execute);
    execute[0] = EXECUTE_LENGTH - 2;
    execute[4] = 0x17;
    memcpy(execute + 5, &statement, 4);
    execute[10] = 1; /* once */
    execute[15] = 1; /* types follow: none is null */
    execute[16] = 8; /* LONGLONG */
}

static void ask(struct connection *connection, uint32_t table_size) {
    uint32_t id = draw(table_size);
    memcpy(connection->execute + 18, &id, 4);
    connection->length = 0;
    size_t length = 4u + connection->execute[0];
    if (send(connection->fd, connection->execute, length, MSG_NOSIGNAL) != (ssize_t)length) fail("send");
}

/* Whether the answer is whole: column count, column, one row or none, end. */
static int is_whole(const struct connection *connection) {
    size_t at = 0;
    int packets = 0;
    while (at + 4 <= connection->length) {
        const unsigned char *packet = connection->incoming + at;
        size_t length = packet[0] | (size_t)packet[1] << 8 | (size_t)packet[2] << 16;
        if (at + 4 + length > connection->length) return 0;
        if (packet[4] == 0xff) fail("the query");
        packets++;
        if (packets > 2 && packet[4] == 0xfe) return 1;
        at += 4 + length;
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count != 7) {
        fprintf(stderr, "floor SOCKET USER DATABASE CONNECTIONS SECONDS TABLE_SIZE\n");
        return 2;
    }
    int connections = atoi(arguments[4]);
    double seconds = atof(arguments[5]);
    uint32_t table_size = (uint32_t)atoi(arguments[6]);
    struct connection *all = calloc((size_t)connections, sizeof *all);
    int epoll = epoll_create1(0);
    for (int index = 0; index < connections; index++) {
        log_in(&all[index], arguments[1], arguments[2], arguments[3]);
        prepare(&all[index]);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[index]};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, all[index].fd, &event)) fail("epoll");
    }
    double cpu_before = cpu(), begun = now(), wall = 0;
    for (int index = 0; index < connections; index++) ask(&all[index], table_size);
    uint64_t queries = 0;
    int waiting = connections;
    while (waiting > 0) {
        struct epoll_event events[EVENTS];
        int ready = epoll_wait(epoll, events, EVENTS, -1);
        wall = now() - begun;
        for (int index = 0; index < ready; index++) {
            struct connection *connection = events[index].data.ptr;
            ssize_t got = recv(connection->fd, connection->incoming + connection->length,
                               BUFFER - connection->length, 0);
            if (got <= 0) fail("receive");
            connection->length += (size_t)got;
            if (!is_whole(connection)) continue;
            queries++;
            if (wall < seconds) ask(connection, table_size);
            else waiting--;
        }
    }
    printf("{\"queries\": %llu, \"wall_s\": %.6f, \"cpu_s\": %.6f}\n", (unsigned long long)queries, wall,
           cpu() - cpu_before);
    return 0;
}
