/* Records what a client says: a relay on a Unix socket that keeps the client's bytes, one file per connection.
 *
 *     record LISTEN SERVER DIRECTORY
 *
 * Connections to LISTEN are relayed to SERVER until SIGTERM; the files are 0, 1, ... in DIRECTORY. replay.c plays them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MOST = 1024, PIECE = 65536 };

/* A relayed connection: the client's socket at 2i + 1, the server's at 2i + 2 of what is polled. */
static struct pollfd polled[1 + 2 * MOST];
static FILE *said[MOST];

static volatile sig_atomic_t is_over;

static void end(int number) {
    (void)number;
    is_over = 1;
}

static void die(const char *what) {
    fprintf(stderr, "record: %s: %s\n", what, strerror(errno));
    exit(1);
}

static struct sockaddr_un address_of(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path) { errno = ENAMETOOLONG; die(path); }
    strcpy(address.sun_path, path);
    return address;
}

static int connected(const char *path) {
    struct sockaddr_un address = address_of(path);
    int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one < 0 || connect(one, (struct sockaddr *)&address, sizeof address)) die("connect");
    return one;
}

static int listening(const char *path) {
    struct sockaddr_un address = address_of(path);
    int one = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (one < 0 || bind(one, (struct sockaddr *)&address, sizeof address) || listen(one, MOST)) die("listen");
    return one;
}

static void accept_one(int number, char *const *arguments) {
    if (number == MOST) { errno = EMFILE; die("too many connections"); }
    char name[4096];
    snprintf(name, sizeof name, "%s/%d", arguments[3], number);
    if (!(said[number] = fopen(name, "wb"))) die(name);
    int client = accept4(polled[0].fd, NULL, NULL, SOCK_CLOEXEC);
    if (client < 0) die("accept");
    polled[2 * number + 1] = (struct pollfd){.fd = client, .events = POLLIN};
    polled[2 * number + 2] = (struct pollfd){.fd = connected(arguments[2]), .events = POLLIN};
}

/* Passes on what one side said; a side that has left takes the other with it. */
static void relay(int at) {
    static char piece[PIECE];
    int number = (at - 1) / 2, other = at % 2 ? at + 1 : at - 1;
    ssize_t length = recv(polled[at].fd, piece, sizeof piece, 0);
    if (length > 0 && at % 2 && fwrite(piece, 1, (size_t)length, said[number]) != (size_t)length) die("write");
    for (ssize_t sent = 0; sent < length;) {
        ssize_t more = send(polled[other].fd, piece + sent, (size_t)(length - sent), MSG_NOSIGNAL);
        if (more <= 0) { length = 0; break; }
        sent += more;
    }
    if (length > 0) return;
    close(polled[at].fd);
    close(polled[other].fd);
    polled[at].fd = polled[other].fd = -1;
    fflush(said[number]);
}

int main(int count, char **arguments) {
    if (count != 4) {
        fprintf(stderr, "usage: record LISTEN SERVER DIRECTORY\n");
        return 2;
    }
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    polled[0] = (struct pollfd){.fd = listening(arguments[1]), .events = POLLIN};
    int connections = 0;
    while (!is_over) {
        if (poll(polled, (nfds_t)(1 + 2 * connections), -1) < 0) continue;
        for (int at = 1; at <= 2 * connections; at++)
            if (polled[at].fd >= 0 && polled[at].revents) relay(at);
        if (polled[0].revents) accept_one(connections++, arguments);
    }
    for (int i = 0; i < connections; i++)
        if (fclose(said[i])) die("write");
    return 0;
}
