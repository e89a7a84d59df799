/* NumPy arrays as arguments of the kernels: every array is checked for its dtype, its size, its memory layout and, where
 * its entries address memory, for their range. An argument that fails raises TypeError or ValueError with its name.
 */

#ifndef SUBGROVE_BUFFERS_H
#define SUBGROVE_BUFFERS_H

#define PY_SSIZE_T_CLEAN /* setup.py defines Py_LIMITED_API, except for free-threaded Python, which has none */
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 32 /* bytes: what the widest SIMD registers need */

typedef enum { FLOAT64, INT64, UINT64, INT32, UINT32, UINT8, RECORD16 } ItemType;
typedef enum { READ, WRITE, READ_OR_NONE } Access;

/* What an argument must be. */
typedef struct {
    const char *name;
    ItemType type;
    Access access;
    Py_ssize_t items; /* number of items; negative: the arguments that it follows from are out of range */
} ArraySpec;

static const struct {
    const char *dtype, *formats; /* formats: codes of the struct module, which differ between platforms */
    Py_ssize_t bytes;
} ITEM_TYPES[] = {{"float64", "d", 8}, {"int64", "qln", 8},  {"uint64", "QLN", 8}, {"int32", "il", 4},
                  {"uint32", "IL", 4}, {"uint8", "B", 1}, {"16-byte records", "T", 16}};

/* Whether a buffer holds items of a type in the byte order of this machine. */
static int has_type(const Py_buffer *view, ItemType type)
{
    const uint16_t one = 1;
    const char *format = view->format ? view->format : "B";
    if (*format == '@' || *format == '=' || (*format == '<' && *(const uint8_t *)&one))
        format++;
    return view->itemsize == ITEM_TYPES[type].bytes && strchr(ITEM_TYPES[type].formats, *format) &&
           (type == RECORD16 || !format[1]);
}

static void release_buffers(Py_buffer *views, int count)
{
    for (int i = 0; i < count; i++)
        if (views[i].obj)
            PyBuffer_Release(&views[i]);
}

static int check_buffer(const Py_buffer *view, const ArraySpec *spec)
{
    if (!has_type(view, spec->type)) {
        PyErr_Format(PyExc_TypeError, "%s must be an array of %s; got the buffer format '%s'.", spec->name,
                     ITEM_TYPES[spec->type].dtype, view->format ? view->format : "B");
        return -1;
    }
    if (spec->items < 0 || view->len / view->itemsize != spec->items) {
        PyErr_Format(PyExc_ValueError, "%s must have %zd items; got %zd.", spec->name, spec->items,
                     view->len / view->itemsize);
        return -1;
    }
    return 0;
}

/* Hold the buffers of all arguments; a null pointer stands for None. Returns 0, or -1 with an exception and none held. */
static int acquire_buffers(PyObject **objects, Py_buffer *views, const ArraySpec *specs, int count)
{
    memset(views, 0, sizeof(Py_buffer) * (size_t)count);
    for (int i = 0; i < count; i++) {
        int flags = PyBUF_FORMAT | PyBUF_C_CONTIGUOUS | (specs[i].access == WRITE ? PyBUF_WRITABLE : 0);
        if (objects[i] == Py_None && specs[i].access == READ_OR_NONE)
            continue;
        if (!PyObject_CheckBuffer(objects[i])) {
            PyErr_Format(PyExc_TypeError, "%s must be an array.", specs[i].name);
            release_buffers(views, count);
            return -1;
        }
        if (PyObject_GetBuffer(objects[i], &views[i], flags)) {
            PyErr_Clear();
            PyErr_Format(PyExc_ValueError, "%s must be a C-contiguous%s array.", specs[i].name,
                         specs[i].access == WRITE ? ", writeable" : "");
            views[i].obj = NULL;
            release_buffers(views, count);
            return -1;
        }
        if (check_buffer(&views[i], &specs[i])) {
            release_buffers(views, count);
            return -1;
        }
    }
    return 0;
}

/* Product of sizes, or -1 if one is negative or the product exceeds what memory can hold. */
static inline Py_ssize_t product(Py_ssize_t one, Py_ssize_t other)
{
    if (one < 0 || other < 0 || (other > 0 && one > PY_SSIZE_T_MAX / 16 / other))
        return -1;
    return one * other;
}

/* Entries of an index array must lie in [0, bound). */
static inline int check_indices(const int64_t *index, Py_ssize_t count, Py_ssize_t bound, const char *name)
{
    int outside = 0;
    for (Py_ssize_t i = 0; i < count; i++)
        outside |= (uint64_t)index[i] >= (uint64_t)bound;
    if (outside)
        PyErr_Format(PyExc_ValueError, "%s must have entries from 0 to %zd.", name, bound - 1);
    return outside ? -1 : 0;
}

/* Numbers of rows, stored as float64, must be whole numbers from 0 to m. */
static inline int check_sizes(const double *sizes, Py_ssize_t count, Py_ssize_t m)
{
    for (Py_ssize_t k = 0; k < count; k++)
        if (!(sizes[k] >= 0.0 && sizes[k] <= (double)m) || sizes[k] != (double)(Py_ssize_t)sizes[k]) {
            PyErr_Format(PyExc_ValueError, "sizes must have whole numbers from 0 to m = %zd.", m);
            return -1;
        }
    return 0;
}

/* The first `sizes[k]` of the m entries of each node address rows of a table. */
static inline int check_node_indices(const int64_t *index, const double *sizes, Py_ssize_t nodes, Py_ssize_t m,
                                     Py_ssize_t bound, const char *name)
{
    for (Py_ssize_t k = 0; k < nodes; k++)
        if (check_indices(index + k * m, (Py_ssize_t)sizes[k], bound, name))
            return -1;
    return 0;
}

/* Aligned memory for some numbers; `memory` is the pointer to free. */
static inline double *allocate_aligned(size_t numbers, void **memory)
{
    *memory = malloc(numbers * sizeof(double) + ALIGNMENT);
    return *memory ? (double *)(((uintptr_t)*memory + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT) : NULL;
}

/* Whether the processor has the instructions that the wide loops are compiled to. */
static inline int has_avx2_and_fma(void)
{
#if defined(__GNUC__) && defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return 0;
#endif
}

/* Multi-phase initialization: each interpreter has its own module object, and there is no state to share. Free-threaded
 * Python would switch its lock on again for a module that does not declare that it needs none. */
#if defined(Py_GIL_DISABLED)
#define KERNEL_SLOTS {{Py_mod_gil, Py_MOD_GIL_NOT_USED}, {0, NULL}}
#else
#define KERNEL_SLOTS {{0, NULL}}
#endif
#define KERNEL_MODULE(name, methods)                                                                                   \
    static PyModuleDef_Slot slots[] = KERNEL_SLOTS;                                                                    \
    static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, #name, NULL, 0, methods, slots, NULL, NULL, NULL};      \
    PyMODINIT_FUNC PyInit_##name(void) { return PyModuleDef_Init(&module); }

#endif
