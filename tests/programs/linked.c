/* SPDX-License-Identifier: MIT */
/*
 * A program with Python linked into it, statically or not:
 *
 *   linked SCRIPT
 */
void Py_InitializeEx(int signals);
int PyRun_SimpleStringFlags(const char *script, void *flags);
int Py_FinalizeEx(void);

int main(int argc, char **argv)
{
	int failed;

	if (argc != 2)
		return 2;
	Py_InitializeEx(1);
	failed = PyRun_SimpleStringFlags(argv[1], 0);
	return Py_FinalizeEx() || failed;
}
