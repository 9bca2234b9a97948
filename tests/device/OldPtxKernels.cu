#include "kernels/common/DependentLaunch.h"
#include "tests/device/LateWord.h"

namespace faiss_bits::test {

namespace {

__global__ void oldReaderKernel(const __grid_constant__ LateWord p) {
    waitForPrevious();
    *p.read = *static_cast<volatile uint32_t*>(p.word);
}

} // namespace

void launchOldReader(const LateWord& params, cudaStream_t stream) {
    launchAfterPrevious(oldReaderKernel, 1, 1, 0, stream, params);
}

bool oldReaderCanWait() {
    return canWaitForPrevious(reinterpret_cast<const void*>(oldReaderKernel));
}

} // namespace faiss_bits::test
