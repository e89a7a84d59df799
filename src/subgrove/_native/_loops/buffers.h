/* Arrays of NumPy held while a loop works on them, and memory for numbers that are worked on several at a time. */

#ifndef SUBGROVE_BUFFERS_H
#define SUBGROVE_BUFFERS_H

#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

#define ALIGNED 32 /* bytes: where processors like the widest lanes to lie */

/* Room for some numbers; `memory` is what `free` is to be told. */
static double *room_for(size_t numbers, void **memory)
{
    *memory = malloc(numbers * sizeof(double) + ALIGNED);
    return *memory ? (double *)(((uintptr_t)*memory + ALIGNED - 1) / ALIGNED * ALIGNED) : NULL;
}

/* Whether the processor has the instructions that the wide loops are compiled to. */
static int has_wide(void)
{
#if defined(__GNUC__) && defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
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
