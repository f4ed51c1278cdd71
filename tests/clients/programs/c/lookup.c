/* Looks names up with getaddrinfo(3) of the C library, as ../README.md describes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#define VERSION gnu_get_libc_version()
#endif

/* musl has no EAI_NODATA before 1.2.4. */
#ifndef EAI_NODATA
#define EAI_NODATA -5
#endif

static double now(void) {
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec + at.tv_nsec / 1e9;
}

static const char *outcome(int status) {
	switch (status) {
	case 0: return "found";
	case EAI_NODATA: return "no data";
	case EAI_NONAME: return "no such name";
	case EAI_AGAIN: return "try again";
	default: return "error";
	}
}

static void print_addresses(const struct addrinfo *first) {
	char text[INET6_ADDRSTRLEN];
	for (const struct addrinfo *one = first; one; one = one->ai_next) {
		const void *address = one->ai_family == AF_INET6
			? (const void *)&((struct sockaddr_in6 *)one->ai_addr)->sin6_addr
			: (const void *)&((struct sockaddr_in *)one->ai_addr)->sin_addr;
		inet_ntop(one->ai_family, address, text, sizeof text);
		printf("%s\"%s\"", one == first ? "" : ", ", text);
	}
}

int main(void) {
	char line[1100], family[8], name[1025];
	printf("{\"version\": \"%s\"}\n", VERSION);
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
		if (sscanf(line, "%7s %1024s", family, name) != 2)
			return 2;
		hints.ai_family = !strcmp(family, "4") ? AF_INET : !strcmp(family, "6") ? AF_INET6 : AF_UNSPEC;
		double start = now();
		int status = getaddrinfo(name, "443", &hints, &found);
		double seconds = now() - start;
		printf("{\"outcome\": \"%s\", \"detail\": \"%d\", \"seconds\": %f, \"addresses\": [", outcome(status), status, seconds);
		if (!status) {
			print_addresses(found);
			freeaddrinfo(found);
		}
		printf("]}\n");
		fflush(stdout);
	}
	return 0;
}
