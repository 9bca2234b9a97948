/// The scans of direct searches; included by the generated sources only.
#pragma once

#include "kernels/ivf/IvfDirectScan.cuh"
#include "kernels/ivf/IvfSharedScan.cuh"
#include "kernels/ivf/IvfStagedScan.cuh"
#include "kernels/ivf/IvfStagedSharedScan.cuh"
