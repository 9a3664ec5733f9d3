#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000 /* one binary for all Python versions from 3.11 on */
#include <Python.h>

#include <math.h>
#include <stdlib.h>

#include <bincp/bincp.h>

static const bincp_api *bincp;

/* Worst-case probability over the ball for a count, at confidence 1 - eta. */
static PyObject *certified_probability(PyObject *module, PyObject *args)
{
    PyObject *certificate;
    long long successes, trials;
    double eta;
    if (!PyArg_ParseTuple(args, "OLLd", &certificate, &successes, &trials, &eta)) {
        return NULL;
    }
    const bincp_operator *op = bincp->operator_of(certificate);
    if (op == NULL) {
        return NULL;
    }
    double p;
    Py_BEGIN_ALLOW_THREADS
    p = op->lower(bincp->cp_lower(successes, trials, eta), op->params);
    Py_END_ALLOW_THREADS
    return PyFloat_FromDouble(p);
}

typedef struct pixel {
    bincp_operator operator;
    double shift;
} pixel;

static double pixel_lower(double p, const void *shift)
{
    return fmax(nextafter(p - *(const double *)shift, 0.0), 0.0);
}

static void release(PyObject *capsule)
{
    free(PyCapsule_GetPointer(capsule, BINCP_OPERATOR_CAPSULE));
}

/* The operator of a ball: its upper bound is left to bincp. */
static PyObject *pixel_operator(PyObject *module, PyObject *argument)
{
    const double shift = PyFloat_AsDouble(argument);
    if (PyErr_Occurred()) {
        return NULL;
    }
    pixel *made = malloc(sizeof *made);
    if (made == NULL) {
        return PyErr_NoMemory();
    }
    *made = (pixel){BINCP_OPERATOR_INIT, shift};
    made->operator.name = "pixel";
    made->operator.lower = pixel_lower;
    made->operator.params = &made->shift;
    return PyCapsule_New(made, BINCP_OPERATOR_CAPSULE, release);
}

static PyMethodDef methods[] = {
    {"certified_probability", certified_probability, METH_VARARGS, NULL},
    {"pixel_operator", pixel_operator, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "pixel_c", NULL, -1, methods};

PyMODINIT_FUNC PyInit_pixel_c(void)
{
    bincp = bincp_import();
    return bincp == NULL ? NULL : PyModule_Create(&definition);
}
