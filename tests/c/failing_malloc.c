/* An allocator that fails when it is told to, and counts the blocks that are in use; for LD_PRELOAD.
 *
 * tests/kernels/failing_allocations.py loads it under Python with PYTHONMALLOC=malloc, so that every
 * allocation of the interpreter and of the compiled modules comes here. glibc only.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

/* Read and written by the test, which has one thread: calls would allocate on their own. */
long before_failure = -1; /* allocations until the one that fails; -1: none does */
long failed = 0;
atomic_long in_use;

static int fails(void)
{
    if (before_failure < 0 || before_failure-- > 0) {
        return 0;
    }
    ++failed;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *block)
{
    in_use += block != NULL;
    return block;
}

void *malloc(size_t size)
{
    return fails() ? NULL : counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return fails() ? NULL : counted(__libc_calloc(n, size));
}

void *realloc(void *block, size_t size)
{
    if (fails()) {
        return NULL;
    }
    return block == NULL ? counted(__libc_malloc(size)) : __libc_realloc(block, size);
}

void free(void *block)
{
    in_use -= block != NULL;
    __libc_free(block);
}
