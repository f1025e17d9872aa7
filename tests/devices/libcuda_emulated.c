/* The stub with kernels. A library is ELF code that Python knows the PTX of, and a launch a piece of work that calls back
   into the process's own Python, whose module tests/devices/emulated.py sets these functions when CUDA is started. */

#define EMULATED 1
#define cuInit start
#include "libcuda_stub.c"
#undef cuInit
#include <sys/uio.h>

enum { REGISTERS, SHARED, LOCAL, THREADS, PARAMETERS, TABLE, FACTS = 8200 }; /* of a kernel; TABLE: offset, size, ... */
static int (*load_code)(const void *code, int arch, u64 *library), (*find_kernel)(u64 library, const char *name, int *facts);
static int (*run_code)(u64 library, const char *name, const unsigned *shape, const void *values, int device);
void stub_kernels(void *load, void *find, void *run) { load_code = load, find_kernel = find, run_code = run; }
size_t stub_spans(u64 *found, size_t most) { /* address and size of all memory that kernels may touch */
  for (size_t i = 0; i < taken && i < most; i++) found[2 * i] = spans[i].address, found[2 * i + 1] = spans[i].bytes;
  return taken;
}

int cuInit(unsigned flags) {
  static const char *const program = "import tests.devices.emulated";
  int (*ensure)(void) = dlsym(RTLD_DEFAULT, "PyGILState_Ensure"), (*run)(const char *, void *) = dlsym(RTLD_DEFAULT, "PyRun_SimpleStringFlags");
  void (*release)(int) = dlsym(RTLD_DEFAULT, "PyGILState_Release");
  int state = ensure(), failed = run_code ? 0 : run(program, NULL);
  release(state);
  return failed ? 999 : start(flags);
}

typedef struct { u64 code; int unloaded; } Library; /* neither these nor kernels are ever freed */
typedef struct Kernel {
  Library *library;
  char name[256], functions[DEVICES]; /* the address of a device's character is its CUfunction */
  int facts[FACTS], dynamic[DEVICES]; /* bytes of shared memory that a launch may add */
  struct Kernel *older;
} Kernel;
static Kernel *kernels;
typedef struct { Kernel *kernel; unsigned shape[7]; char values[]; } Launch; /* grid, block, bytes of shared memory */

/* The kernel of a CUkernel or of a CUfunction, and whether it can be used on a device. */
static int kernel_of(void *handle, int device, Kernel **found) {
  for (*found = kernels; *found; *found = (*found)->older)
    if (handle == *found || (device >= 0 && handle == &(*found)->functions[device])) return (*found)->library->unloaded ? 400 : 0;
  return 400;
}
static int arch_of(int device) {
  int major, minor;
  cuDeviceGetAttribute(&major, 75, device), cuDeviceGetAttribute(&minor, 76, device);
  return 10 * major + minor;
}
int cuLibraryLoadData(void **library, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  Library *made = calloc(1, sizeof *made);
  return *library = made, load_code(code, arch_of(current < 0 ? 0 : current), &made->code);
}
int cuLibraryUnload(void *library) {
  return ((Library *)library)->unloaded++ ? 400 : 0;
}
int cuLibraryGetKernel(void **kernel, void *library, const char *name) {
  Kernel *made = calloc(1, sizeof *made);
  made->library = library;
  snprintf(made->name, sizeof made->name, "%s", name);
  int status = made->library->unloaded ? 400 : find_kernel(made->library->code, name, made->facts);
  if (status) return free(made), status;
  for (int i = 0; i < DEVICES; i++) made->dynamic[i] = (48 << 10) - made->facts[SHARED];
  hold(), made->older = kernels, *kernel = kernels = made;
  return done(0);
}
int cuKernelGetFunction(void **function, void *kernel) {
  Kernel *found;
  return ready() ?: kernel_of(kernel, current, &found) ?: (*function = &found->functions[current], 0);
}
int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device) {
  Kernel *found;
  int status = kernel_of(kernel, device, &found), *facts = found ? found->facts : NULL;
  if (status) return status;
  static const char place[] = {THREADS, SHARED, -1, LOCAL, REGISTERS}; /* by attribute */
  *value = attribute == 8 ? found->dynamic[device] : attribute < 5 && place[attribute] >= 0 ? facts[place[attribute]] : 0;
  return 0;
}
int cuKernelSetAttribute(int attribute, int value, void *kernel, int device) {
  Kernel *found;
  int status = kernel_of(kernel, device, &found), most;
  if (status || attribute != 8) return status;
  cuDeviceGetAttribute(&most, 97, device);
  return value < 0 || value + found->facts[SHARED] > most ? 1 : (found->dynamic[device] = value, 0);
}
int cuFuncGetAttribute(int *value, int attribute, void *function) { return current < 0 ? 201 : cuKernelGetAttribute(value, attribute, function, current); }
int cuFuncSetAttribute(void *function, int attribute, int value) { return current < 0 ? 201 : cuKernelSetAttribute(attribute, value, function, current); }
static int blocks(Kernel *kernel, int threads, size_t shared) { /* that a multiprocessor holds */
  int warps = (threads + 31) / 32, registers = (kernel->facts[REGISTERS] + 7) / 8 * 256 * warps; /* in 256 a warp */
  size_t bytes = 1024 + kernel->facts[SHARED] + shared, most = 64 / warps;
  if (most > 32) most = 32;
  if (registers && most > 65536 / registers) most = 65536 / registers;
  return most > (228 << 10) / bytes ? (228 << 10) / bytes : most;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *found, void *function, int threads, size_t shared) {
  Kernel *kernel;
  return kernel_of(function, current, &kernel) ?: (*found = blocks(kernel, threads, shared), 0);
}

static int run_launch(u64 work, int device) {
  Launch *it = (Launch *)work;
  if (it->kernel->library->unloaded) return 719;
  return run_code ? run_code(it->kernel->library->code, it->kernel->name, it->shape, it->values, device) : 0;
}
static int readable(const void *from, void *to, size_t bytes) { /* a table that is too short ends in what is no address */
  struct iovec ours = {to, bytes}, theirs = {(void *)from, bytes};
  return process_vm_readv(getpid(), &ours, 1, &theirs, 1, 0) == bytes;
}
static int launch(const unsigned *shape, void *stream, void *function, void **values, void **extra) {
  static const unsigned most[6] = {0x7FFFFFFF, 65535, 65535, 1024, 1024, 64};
  Kernel *kernel;
  int status = ready() ?: kernel_of(function, current, &kernel);
  if (status) return status;
  if (stream && (((Stream *)stream)->device != current || ((Stream *)stream)->gone)) return 400;
  for (int i = 0; i < 6; i++) if (!shape[i] || shape[i] > most[i]) return 1;
  u64 threads = (u64)shape[3] * shape[4] * shape[5];
  int *facts = kernel->facts, *table = facts + TABLE, count = facts[PARAMETERS];
  if (threads > 1024 || (facts[THREADS] && threads != facts[THREADS])) return 1; /* Triton requires its number */
  if ((int)shape[6] > kernel->dynamic[current]) return 1;
  if (!blocks(kernel, threads, 0)) return 701;
  size_t bytes = count ? table[2 * count - 2] + table[2 * count - 1] : 0, given;
  Launch *made = calloc(1, sizeof *made + bytes + 1);
  made->kernel = kernel;
  memcpy(made->shape, shape, sizeof made->shape);
  if (extra && count) { /* 1, a buffer, 2, the address of its size, 0 */
    given = extra[0] == (void *)1 && extra[2] == (void *)2 ? *(size_t *)extra[3] : 0;
    if (given != bytes) return 1;
    memcpy(made->values, extra[1], bytes);
  }
  for (int i = 0; !extra && i < count; i++) {
    void *value;
    if (!readable(&values[i], &value, sizeof value) || !readable(value, made->values + table[2 * i], table[2 * i + 1])) return 1;
  }
  run_kernel = run_launch;
  return put(stream, (Work){.kind = LAUNCH, .to = (u64)made});
}
int cuLaunchKernelEx(const unsigned *shape, void *function, void **values, void **extra) {
  return hold(), done(launch(shape, *(void **)(shape + 8), function, values, extra));
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned i, unsigned j, unsigned k, unsigned shared,
                   void *stream, void **values, void **extra) {
  const unsigned shape[7] = {x, y, z, i, j, k, shared};
  return hold(), done(launch(shape, stream, function, values, extra));
}
