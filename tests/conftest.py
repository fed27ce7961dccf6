"""A strict session: a guarded backend, four devices, no silent conversions."""

from jaxsearch import backend

backend.protect()

import jax  # noqa: E402

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)
jax.config.update("jax_numpy_rank_promotion", "raise")
# Raw uint32 keys may be made and passed on, but drawing from one is an error; a test
# of raw keys, or of pgx, says `with jax.legacy_prng_key("allow"):`.
jax.config.update("jax_legacy_prng_key", "error")
