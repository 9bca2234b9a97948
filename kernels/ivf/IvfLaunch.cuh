/// The launches of streams and tiles; included by the generated sources only.
#pragma once

#include "kernels/ivf/IvfStreams.cuh"
#include "kernels/ivf/IvfTiles.cuh"
