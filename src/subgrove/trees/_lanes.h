/* What the compiled loops of trees share: several rows at a time, and arrays held while a loop works on them.
 *
 * A `lanes` holds LANES numbers, and arithmetic on it is done on all of them at once. Compilers without vector types get
 * one number at a time: the same loops, slower. A function marked WIDE is compiled for processors that multiply and add
 * four numbers in one instruction, and called only where `has_wide()`.
 */

#ifndef SUBGROVE_LANES_H
#define SUBGROVE_LANES_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpsabi" /* how lanes are passed to functions: these are all inlined */
#define LANES 4
#define INLINED static inline __attribute__((always_inline))
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t marks __attribute__((vector_size(LANES * sizeof(double))));

/* The larger of two numbers in each lane. */
INLINED lanes larger(lanes one, lanes other)
{
    marks first = one > other;
    return (lanes)(((marks)one & first) | ((marks)other & ~first));
}
#else
#define LANES 1
#define INLINED static inline
typedef double lanes;

INLINED lanes larger(lanes one, lanes other) { return one > other ? one : other; }
#endif

#if defined(__GNUC__) && defined(__x86_64__)
#define WIDE __attribute__((target("avx2,fma")))
static int has_wide(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
#else
#define WIDE
static int has_wide(void) { return 0; }
#endif

INLINED lanes load(const double *numbers)
{
    lanes loaded;
    memcpy(&loaded, numbers, sizeof(lanes));
    return loaded;
}

INLINED void store(lanes stored, double *numbers) { memcpy(numbers, &stored, sizeof(lanes)); }

INLINED double sum_of(lanes added)
{
    double one[LANES], total = 0.0;
    store(added, one);
    for (int i = 0; i < LANES; i++)
        total += one[i];
    return total;
}

/* Room for some lanes, where processors like them to lie; `memory` is what `free` is to be told. */
static lanes *room_for(size_t count, void **memory)
{
    *memory = malloc((count + 1) * sizeof(lanes));
    if (!*memory)
        return NULL;
    return (lanes *)(((uintptr_t)*memory + sizeof(lanes) - 1) / sizeof(lanes) * sizeof(lanes));
}

static void release(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
}

/* Buffers of arrays of doubles (or 64-bit integers) of given sizes, those from `written` on to be written to; None gives
 * a null pointer. Returns 0, or -1 with an exception and nothing held. */
static int hold(PyObject **objects, Py_buffer *views, int count, int written, const Py_ssize_t *items)
{
    for (int i = 0; i < count; i++) {
        int flags = PyBUF_C_CONTIGUOUS | (i >= written ? PyBUF_WRITABLE : 0);
        views[i].obj = NULL;
        views[i].buf = NULL;
        if (objects[i] == Py_None)
            continue;
        if (PyObject_GetBuffer(objects[i], &views[i], flags)) {
            release(views, i);
            return -1;
        }
        if (views[i].len != items[i] * (Py_ssize_t)sizeof(double)) {
            release(views, i + 1);
            PyErr_SetString(PyExc_ValueError, "an array has the wrong size");
            return -1;
        }
    }
    return 0;
}

#endif
