"""gymnasium's vector wrappers for AtariEnv: episodes' statistics, videos."""
