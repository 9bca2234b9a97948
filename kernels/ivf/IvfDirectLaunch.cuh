/// The scans of direct searches; included by the generated sources only.
#pragma once

#include "kernels/ivf/IvfDirectScan.cuh"
#include "kernels/ivf/IvfSharedScan.cuh"
