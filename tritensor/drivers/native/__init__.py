"""Native code for the processor from Triton kernels: what simulated devices run where LLVM is installed."""
