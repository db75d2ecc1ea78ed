/* stepper: the loop of a worker over its environments of one agent. ringmaster-stepper.so has it,
 * which python/ringmaster/stepper.py opens in the worker, whose interpreter it runs in.
 *
 * In Python the same loop takes a tenth of the time of CartPole's step. It writes a row by itself
 * if the environment returned what nearly all return: an array of the row's type and shape, and a
 * number. It hands any other result to Python.
 *
 * It is compiled without Python's headers and linked without Python: its functions are of the
 * stable ABI, and the head of an array has been the same since NumPy 1.7 (stepper.py checks it), so
 * one file serves all versions of CPython. The caller holds the interpreter's lock (ctypes.PyDLL).
 */
#include "actor/env.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct _object PyObject;
#define END ((PyObject *)NULL) /* of arguments */
/* PyArrayObject_fields without its PyObject_HEAD (NumPy's ndarraytypes.h). */
struct array {
    const void *data;
    int dims;
    const intptr_t *shape, *strides;
    PyObject *base, *dtype;
    int flags;
};
enum { ARRAY_IN_ORDER = 1 | 0x100 }; /* C-contiguous, aligned */

extern PyObject PyTuple_Type;
PyObject *PyObject_Type(PyObject *);
PyObject *PyObject_CallFunctionObjArgs(PyObject *, ...);
PyObject *PyObject_CallMethodObjArgs(PyObject *, PyObject *, ...);
PyObject *PyObject_Call(PyObject *, PyObject *, PyObject *);
PyObject *PyObject_GetAttrString(PyObject *, const char *);
PyObject *PyDict_New(void);
PyObject *PyLong_FromLong(long);
PyObject *PyLong_FromUnsignedLong(unsigned long);
PyObject *PyList_GetItem(PyObject *, ptrdiff_t);
PyObject *PyTuple_GetItem(PyObject *, ptrdiff_t);
ptrdiff_t PyTuple_Size(PyObject *);
int PyDict_SetItemString(PyObject *, const char *, PyObject *);
ptrdiff_t PyDict_Size(PyObject *);
PyObject *PyDict_GetItemWithError(PyObject *, PyObject *);
int PyObject_IsTrue(PyObject *);
double PyFloat_AsDouble(PyObject *);
PyObject *PyErr_Occurred(void);
void PyErr_Clear(void);
void Py_IncRef(PyObject *);
void Py_DecRef(PyObject *);

/* A batch of worlds; stepper.py has the same members. */
struct rm_stepper {
    uint32_t *world; /* the one that runs; the actor names it if it does not return */
    uint8_t *obs;    /* rows of obs_bytes; 0: Python writes all rows */
    uint64_t obs_bytes;
    const intptr_t *shape;
    float *reward;
    uint8_t *flags;
    const int32_t *actions;   /* each is given as a number; NULL: as Python has made it */
    uint8_t *over;            /* 1: an episode begins with the world's next row */
    const uint32_t *seeds;    /* of the next episodes */
    uint32_t *begun;          /* of the latest ones */
    const uint32_t *index[2]; /* of the process's generators: draws change them */
    uint32_t unmoved[2];
    PyObject *called;         /* a list: the objects whose step() and reset() are called */
    PyObject *step, *nothing; /* the name, and an empty tuple */
    PyObject *array, *dtype;  /* the classes of arrays and of their numbers */
    PyObject *mask;           /* the name of a mask in an info: Python writes such rows */
    PyObject *drew;           /* called with a world that drew from the generators */
    PyObject *ends;           /* called with a world and the result that ends its episode */
    PyObject *other;          /* called with a world and a result, to write the row */
    int32_t dims, real;       /* real: the numbers are float32 */
    int32_t head, figures;    /* head: bytes of PyObject_HEAD. figures: `ends` is called for every
                                 episode's end */
};

/* Whether the file and stepper.py are of one version. */
extern const uint32_t rm_stepper_bytes;
__attribute__((visibility("default"))) const uint32_t rm_stepper_bytes = sizeof(struct rm_stepper);

/* The bits of what is not finite are the largest, without the sign. Lanes, so that vectors hold
 * them. */
static int all_finite(const uint32_t *values, uint64_t n)
{
    enum { LANES = 8 };
    uint32_t most[LANES] = {0}, all = 0;
    uint64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            const uint32_t bits = values[i + k] & 0x7fffffff;
            most[k] = bits > most[k] ? bits : most[k];
        }
    for (; i < n; i++)
        most[0] = (values[i] & 0x7fffffff) > most[0] ? values[i] & 0x7fffffff : most[0];
    for (int k = 0; k < LANES; k++)
        all = most[k] > all ? most[k] : all;
    return all < 0x7f800000;
}

static int is_a(PyObject *object, const PyObject *class)
{
    PyObject *type = PyObject_Type(object);
    Py_DecRef(type);
    return type == class;
}

/* Writes an observation. 0: it is not of the common form. */
static int write_obs(const struct rm_stepper *s, long w, PyObject *obs)
{
    if (!is_a(obs, s->array))
        return 0;
    const struct array *a = (const void *)((const char *)obs + s->head);
    if (a->dtype != s->dtype || a->dims != s->dims || (a->flags & ARRAY_IN_ORDER) != ARRAY_IN_ORDER)
        return 0;
    for (int i = 0; i < a->dims; i++)
        if (a->shape[i] != s->shape[i])
            return 0;
    if (s->real && !all_finite(a->data, s->obs_bytes / sizeof(float)))
        return 0;
    memcpy(s->obs + (uint64_t)w * s->obs_bytes, a->data, s->obs_bytes);
    return 1;
}

/* Writes the row of a result: (observation, info) of reset(), (observation, reward, terminated,
 * truncated, info) of step(). 0: the result is not of the common form. */
static int write_row(const struct rm_stepper *s, long w, PyObject *result)
{
    const int begins = s->over[w], last = begins ? 1 : 4;
    if (!s->obs_bytes || !is_a(result, &PyTuple_Type) || PyTuple_Size(result) != last + 1)
        return 0;
    PyObject *info = PyTuple_GetItem(result, last);
    if (PyDict_GetItemWithError(info, s->mask) || PyErr_Occurred())
        return 0;
    const double reward = begins ? 0 : PyFloat_AsDouble(PyTuple_GetItem(result, 1));
    if ((reward == -1 && PyErr_Occurred()) || !isfinite((float)reward))
        return 0;
    const int terminated = begins ? 0 : PyObject_IsTrue(PyTuple_GetItem(result, 2));
    const int truncated = begins ? 0 : PyObject_IsTrue(PyTuple_GetItem(result, 3));
    if (terminated < 0 || truncated < 0 || !write_obs(s, w, PyTuple_GetItem(result, 0)))
        return 0;
    s->reward[w] = (float)reward;
    s->flags[w] = begins       ? RM_ENV_FIRST
                  : terminated ? RM_ENV_TERMINATED
                  : truncated  ? RM_ENV_TRUNCATED
                               : 0;
    s->over[w] = terminated || truncated;
    return 1;
}

/* Calls a function of Python's with a world's number and one value more, or NULL. */
static int call_with(PyObject *function, long w, PyObject *value)
{
    PyObject *world = PyLong_FromLong(w);
    PyObject *nothing = world ? PyObject_CallFunctionObjArgs(function, world, value, END) : NULL;
    if (world)
        Py_DecRef(world);
    if (!nothing)
        return -1;
    Py_DecRef(nothing);
    return 0;
}

static PyObject *call_reset(const struct rm_stepper *s, long w, PyObject *world)
{
    PyObject *reset = PyObject_GetAttrString(world, "reset"), *named = PyDict_New();
    PyObject *seed = PyLong_FromUnsignedLong(s->begun[w] = s->seeds[w]), *result = NULL;
    if (reset && named && seed && PyDict_SetItemString(named, "seed", seed) == 0)
        result = PyObject_Call(reset, s->nothing, named);
    PyObject *const mine[] = {reset, named, seed};
    for (int i = 0; i < 3; i++)
        if (mine[i])
            Py_DecRef(mine[i]);
    return result;
}

/* What a world returns for its next row. */
static PyObject *call_world(const struct rm_stepper *s, long w, PyObject *action)
{
    PyObject *world = PyList_GetItem(s->called, w), *result;
    if (!world)
        return NULL;
    Py_IncRef(world); /* the call may replace it in the list */
    result = s->over[w] ? call_reset(s, w, world)
                        : PyObject_CallMethodObjArgs(world, s->step, action, END);
    Py_DecRef(world);
    return result;
}

/* Steps some worlds, with actions[i] each where the columns have none. -1: an exception is set. */
__attribute__((visibility("default"))) int
rm_stepper_step(const struct rm_stepper *s, PyObject *actions, long first, long worlds);
int rm_stepper_step(const struct rm_stepper *s, PyObject *actions, long first, long worlds)
{
    for (long w = first; w < first + worlds; w++) {
        PyObject *action =
            s->actions ? PyLong_FromLong(s->actions[w]) : PyList_GetItem(actions, w - first);
        if (!action)
            return -1;
        *s->world = (uint32_t)w;
        PyObject *result = call_world(s, w, action);
        if (s->actions)
            Py_DecRef(action);
        if (!result)
            return -1;
        int rc = 0;
        if (*s->index[0] != s->unmoved[0] || *s->index[1] != s->unmoved[1])
            rc = call_with(s->drew, w, NULL);
        if (rc == 0 && !write_row(s, w, result)) {
            PyErr_Clear();
            rc = call_with(s->other, w, result);
        } else if (rc == 0 && s->over[w] &&
                   (s->figures || PyDict_Size(PyTuple_GetItem(result, 4)) != 0)) {
            rc = call_with(s->ends, w, result);
        }
        Py_DecRef(result);
        if (rc < 0)
            return rc;
    }
    return 0;
}
