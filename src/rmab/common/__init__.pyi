"""The public names: read by type checkers, and by `__init__.py`, which loads each on first use."""

from .arrays import (
    BoolArray as BoolArray,
    Element as Element,
    FloatArray as FloatArray,
    IntArray as IntArray,
    ReadOnly as ReadOnly,
    frozen as frozen,
    log_over as log_over,
    sealed as sealed,
    sum_by_group as sum_by_group,
)
from .checks import (
    SUMMED as SUMMED,
    as_amount as as_amount,
    as_floats as as_floats,
    as_indices as as_indices,
    as_integer as as_integer,
    as_mask as as_mask,
    as_seed as as_seed,
    as_share as as_share,
    as_states as as_states,
    as_table as as_table,
    as_tolerance as as_tolerance,
    available as available,
    check_magnitude as check_magnitude,
    check_memory as check_memory,
    check_rng as check_rng,
    check_unmasked as check_unmasked,
    checked_text as checked_text,
    expect as expect,
    in_words as in_words,
    is_builtin as is_builtin,
    is_number as is_number,
    is_several as is_several,
)
from .extras import EXTRAS as EXTRAS, require as require
from .files import (
    SUFFIXES as SUFFIXES,
    check_writable as check_writable,
    checked_suffix as checked_suffix,
    parse_json as parse_json,
    parse_toml as parse_toml,
    write_atomically as write_atomically,
)
from .machine_code import clear_cache as clear_cache, home as home
from .options import (
    ArmCount as ArmCount,
    Budget as Budget,
    Episodes as Episodes,
    Horizon as Horizon,
    Numbers as Numbers,
    checked_options as checked_options,
    json_schema as json_schema,
    path_of as path_of,
    schema as schema,
    share as share,
)
from .packing import pack as pack, unpack as unpack
from .processes import cached_property as cached_property, chunks_of as chunks_of, cores as cores, each as each
from .references import (
    Reference as Reference,
    folders as folders,
    folders_aside as folders_aside,
    is_installed as is_installed,
    look_in as look_in,
    source_digest as source_digest,
)
from .registry import (
    Entry as Entry,
    Problems as Problems,
    Registry as Registry,
    import_target as import_target,
    nearest as nearest,
)
from .storage import (
    Fields as Fields,
    Format as Format,
    Stored as Stored,
    build_any as build_any,
    kind_of as kind_of,
    load_any as load_any,
)
from .tables import (
    PLAIN_DIALECT as PLAIN_DIALECT,
    TABLE_SUFFIXES as TABLE_SUFFIXES,
    Dialect as Dialect,
    write_table as write_table,
)
