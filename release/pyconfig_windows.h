// Stands for the pyconfig.h of CPython for Windows on x86-64 when extension modules are compiled on
// another system: what Python's other headers ask for. They are the same on all systems.
#pragma once

#define MS_WIN32
#define MS_WIN64
#define MS_WINDOWS
#define NT_THREADS
#define Py_ENABLE_SHARED 1
#define HAVE_DECLSPEC_DLL
#define PLATFORM "win32"

#define SIZEOF_SHORT 2
#define SIZEOF_INT 4
#define SIZEOF_LONG 4
#define SIZEOF_LONG_LONG 8
#define SIZEOF_FLOAT 4
#define SIZEOF_DOUBLE 8
#define SIZEOF_VOID_P 8
#define SIZEOF_SIZE_T 8
#define SIZEOF_TIME_T 8
#define SIZEOF_FPOS_T 8
#define SIZEOF_HKEY 8
#define SIZEOF_WCHAR_T 2
#define SIZEOF_PID_T 4
#define ALIGNOF_SIZE_T 8
#define ALIGNOF_MAX_ALIGN_T 8

#define HAVE_STDDEF_H 1
#define HAVE_STDARG_PROTOTYPES 1
#define HAVE_WCHAR_H 1
#define HAVE_SYS_TYPES_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_ERRNO_H 1
#define HAVE_IO_H 1
#define DOUBLE_IS_LITTLE_ENDIAN_IEEE754 1
#define WITH_PYMALLOC 1
#define WITH_DOC_STRINGS 1
#define WITH_DECIMAL_CONTEXTVAR 1
#define Py_HASH_CUTOFF 0
