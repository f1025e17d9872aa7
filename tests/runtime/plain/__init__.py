"""Programs of users who write Triton kernels, as they are."""
