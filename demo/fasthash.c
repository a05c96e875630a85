/* SPDX-License-Identifier: MIT */
/*
 * A C extension for the demo: digest(data, rounds) hashes bytes over and over, without the
 * interpreter's lock, so that several threads can be inside at once. FNV-1a, chosen because it is
 * short; it protects nothing.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#define FNV_OFFSET 0xcbf29ce484222325u
#define FNV_PRIME  0x100000001b3u

static uint64_t hash_once(const unsigned char *bytes, Py_ssize_t length, uint64_t hash)
{
	for (Py_ssize_t i = 0; i < length; i++)
		hash = (hash ^ bytes[i]) * FNV_PRIME;
	return hash;
}

static PyObject *digest(PyObject *module, PyObject *args)
{
	uint64_t hash = FNV_OFFSET;
	unsigned int rounds;
	Py_buffer data;

	(void)module;
	if (!PyArg_ParseTuple(args, "y*I", &data, &rounds))
		return NULL;
	Py_BEGIN_ALLOW_THREADS;
	for (unsigned int i = 0; i < rounds; i++)
		hash = hash_once(data.buf, data.len, hash);
	Py_END_ALLOW_THREADS;
	PyBuffer_Release(&data);
	return PyLong_FromUnsignedLongLong(hash);
}

static PyMethodDef methods[] = {
	{"digest", digest, METH_VARARGS, "digest(data, rounds): a 64-bit hash of bytes"},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT, "fasthash", "Hash bytes, fast", -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_fasthash(void)
{
	return PyModule_Create(&definition);
}
