#pragma once

namespace faiss_bits {

/// What the cost models know of a device's speed: they say how long a plan is
/// expected to take, and decide nothing. The values are those of an H200, for
/// which the models were fitted.
struct DeviceSpeed {
    /// Of a long read of memory.
    double bytesPerSecond = 4.53e12;
    /// Arithmetic, as a part of that of an H200: its 132 multiprocessors at
    /// their highest clock.
    double arithmetic = 1;
};

/// The speed of a device, -1 being the current one: that of the H200, scaled by
/// the memory's clock and width and by multiprocessors times their clock. Of
/// other GPUs it is a guess that nobody has measured; tensor cores and float64
/// differ by more than that. Asks the driver the first time and remembers; safe
/// from several threads. Throws Error for a device that does not exist.
DeviceSpeed deviceSpeed(int device = -1);

/// Bytes at the speed of the memory.
inline double readMicroseconds(double bytes, const DeviceSpeed& speed) {
    return bytes / speed.bytesPerSecond * 1e6;
}

} // namespace faiss_bits
