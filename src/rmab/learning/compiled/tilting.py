"""The reference of a mirror step: one pass over a table that may be larger than the caches."""

from rmab.common.arrays import FloatArray
from rmab.common.compile import compiled


@compiled
def tilted_flow(flow: FloatArray, floor: float, factor: FloatArray, table: FloatArray) -> None:
    """Write the flow (C,H,S,2,S), or the floor where it is less, times the factor (C,H,S,2) of its row into the table."""
    blocks, horizon, states, _, _ = flow.shape
    for c in range(blocks):
        for h in range(horizon):
            for s in range(states):
                for a in range(2):
                    times = factor[c, h, s, a]
                    for y in range(states):
                        x = flow[c, h, s, a, y]
                        table[c, h, s, a, y] = (x if x > floor else floor) * times
