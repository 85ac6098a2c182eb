import createError from '@fastify/error'

/** The bus was closed, with all its topics, or this topic was dropped from it. */
export const BusClosedError = createError('AGT_ERR_BUS_CLOSED', 'The event bus is closed, or has dropped this topic.', 503)

/** As many topics as the bus may hold are in use. */
export const TopicLimitError = createError<[number]>('AGT_ERR_BUS_TOPIC_LIMIT', 'All %d topics of this server are in use; try again later.', 503)

/** The topic takes no more events. */
export const TopicEndedError = createError<[string]>('AGT_ERR_BUS_TOPIC_ENDED', 'Topic "%s" has ended and takes no more events.', 500)

/** The name of an event holds a character that would end its line on the wire. */
export const EventNameError = createError<[string]>('AGT_ERR_BUS_EVENT_NAME', 'The event name %s holds a line break or NUL.', 500)

/** The payload cannot be written as JSON. */
export const EventDataError = createError<[string, { readonly cause: unknown }?]>('AGT_ERR_BUS_EVENT_DATA', 'Published data is a string or anything that JSON can hold: %s.', 500)

/** An epoch is part of every cursor, so it holds letters, digits, `_` and `-` only. */
export const EpochError = createError<[string]>('AGT_ERR_BUS_EPOCH', 'The epoch %s is not 1 to 64 letters, digits, "_" or "-".', 500)
