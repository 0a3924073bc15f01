-- The list of gossip peers.

-- name: read_peers
SELECT node_id, address FROM cn_relay.gossip_peers ORDER BY added_at, node_id LIMIT $1;
