/// The launches; included by the generated sources only.
#pragma once

#include "kernels/ivf/IvfEstimatesLaunch.cuh"
#include "kernels/ivf/IvfRescore.cuh"
#include "kernels/ivf/IvfStreams.cuh"
#include "kernels/ivf/IvfTiles.cuh"
