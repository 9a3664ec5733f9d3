/* Checks that count, and report each failure with its place: each test_*.c is one program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

static long checks;
static long failures;

#define CHECK(condition)                                                    \
    do {                                                                    \
        ++checks;                                                           \
        if (!(condition)) {                                                 \
            ++failures;                                                     \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
        }                                                                   \
    } while (0)

/* Print the totals, and return the exit status of the program. */
static int report(const char *name)
{
    printf("%s: %ld checks, %ld failures\n", name, checks, failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
